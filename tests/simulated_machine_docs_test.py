#!/usr/bin/env python3
"""Fails when docs/simulated-machine.md, docs/engine.md and the sources differ: every parameter of every
model and of the engine has its value there, and a source (or "assumed"); each figure in the code beside
them is in the file that its row names; every CUDA name without a body has its reason."""
import fnmatch
import json
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])


def shown(value):
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def parameters(model):
    for key, value in model.items():
        if isinstance(value, dict):
            yield from ((f"{key}.{inner}", shown(v)) for inner, v in value.items())
        elif key not in ("name", "mig"):
            yield key, shown(value)


def table_rows(document):
    return [[cell.strip() for cell in line.strip("|").split("|")]
            for line in (root / "docs" / document).read_text().splitlines()
            if line.startswith("| ")]


rows = table_rows("simulated-machine.md")
head = next(row for row in rows if row[0] == "parameter")
told = {row[0]: dict(zip(head[1:], row[1:])) for row in rows if len(row) == len(head)}
bad = [f"{name}: no source" for name, row in told.items() if not row["source"]]
for file in sorted((root / "src/simdriver/models").glob("*.json")):
    for name, value in parameters(json.loads(file.read_text())):
        seen = told.get(name, {}).get(file.stem)
        if seen != value:
            bad.append(f"{file.name}: {name} is {value}, the docs say {seen}")


def beside_the_models():
    """Rows that name a file and what stands in it."""
    found = 0
    for row in rows:
        for file, text in re.findall(r"`((?:\w+/)?\w+\.(?:cc|h))` `([^`]+)`", row[2] if len(row) == 4 else ""):
            found += 1
            if not row[3]:
                yield f"{row[0]}: no source"
            if text not in (root / "src/simdriver" / file).read_text():
                yield f"{row[0]}: {file} has no {text}"
    if found < 20:
        yield f"only {found} figures of the code have a row"


def engine_figures():
    """Fields of the engine's parameters, as docs/engine.md would say their defaults."""
    text = (root / "src/engine/work.h").read_text()
    units = {"kMillisecond": "ms", "kMicrosecond": "us"}
    for struct, prefix in (("CopyLaneSpec", "copy "), ("EngineSpec", "")):
        body = re.search(rf"struct {struct} {{(.*?)\n}};", text, re.DOTALL).group(1)
        for name, value in re.findall(r"^  [\w:]+ (\w+) = ([^;]+);", body, re.MULTILINE):
            value = re.sub(r"(\d+) \* (\w+)", lambda m: f"{m[1]} {units[m[2]]}", value)
            value = value.replace("kSecond / 6", "1/6 s").removesuffix(".0")
            yield prefix + name, value


bad += beside_the_models()
engine_rows = {row[0]: row for row in table_rows("engine.md") if len(row) == 3}
for name, value in engine_figures():
    _, told_value, source = engine_rows.get(name, (name, None, ""))
    if told_value != value or not source:
        bad.append(f"engine: {name} is {value}, docs/engine.md says {told_value}, source: {source}")


def without_body():
    """Names of the table; a name of per-thread streams goes with the plain one."""
    table = (root / "src/driver_abi/cuda_entry_points.def").read_text()
    bodies = {name for file in (root / "src/simdriver/cuda").glob("*.cc")
              for name in re.findall(r"\bsim_(cu\w+)\(", file.read_text())}
    names = set(re.findall(r"^ALIQUOT_ENTRY\((\w+),", table, re.MULTILINE))
    return {name for name in names - bodies if not name.endswith(("_ptsz", "_ptds"))}


listed = {pattern for row in rows for pattern in re.findall(r"`(cu\w[\w*]*)`", row[0])}
absent = without_body()
bad += [f"{name} answers NOT_SUPPORTED, and the docs do not say why" for name in sorted(absent)
        if not any(fnmatch.fnmatchcase(name, pattern) for pattern in listed)]
bad += [f"the docs say that {pattern} answers NOT_SUPPORTED: none does" for pattern in sorted(listed)
        if not any(fnmatch.fnmatchcase(name, pattern) for name in absent)]
print("\n".join(bad))
sys.exit(bool(bad))
