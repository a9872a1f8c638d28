#!/usr/bin/env python3
"""Checks on the tree as a whole: sizes of hand-written files, no machine paths, sources listed."""
import pathlib, re, subprocess, sys

root = pathlib.Path(sys.argv[1])
LIMITS = {".cc": 500, ".h": 250, ".py": 500, ".sh": 500}
MACHINE_PATH = re.compile(r"(^|[^A-Za-z0-9_.])/(work|farm)/")

listed = subprocess.run(["git", "-C", str(root), "ls-files", "-co", "--exclude-standard"],
                        capture_output=True, text=True)
if listed.returncode != 0:
    print("not a git checkout: nothing to check"), sys.exit(0)

bad = []
for name in listed.stdout.splitlines():
    path = root / name
    if not path.is_file():
        continue
    try:
        text = path.read_text()
    except UnicodeDecodeError:
        continue
    lines = text.count("\n")
    limit = LIMITS.get(path.suffix)
    if limit and lines > limit:
        bad.append(f"{name}: {lines} lines, at most {limit}: split it by subject")
    for number, line in enumerate(text.splitlines(), 1):
        if MACHINE_PATH.search(line) and name != "tests/tree_test.py":
            bad.append(f"{name}:{number}: a path of one machine")
    if path.suffix == ".cc" and name.startswith("src/"):
        cmake = (path.parent / "CMakeLists.txt")
        if not cmake.exists() or not re.search(rf"\b{re.escape(path.stem)}\b", cmake.read_text()):
            bad.append(f"{name}: not listed in its CMakeLists.txt")
print("\n".join(bad))
sys.exit(bool(bad))
