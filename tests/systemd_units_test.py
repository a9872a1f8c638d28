"""systemd finds nothing to say about the units of deploy/systemd: systemd_units_test.py SOURCE_DIR. What they start
is stood in for, since it is not installed here. Exit status 77: there is no systemd-analyze."""
import pathlib, shutil, subprocess, sys, tempfile

if shutil.which("systemd-analyze") is None:
    print("skipped: systemd-analyze is not installed (package systemd)")
    sys.exit(77)
with tempfile.TemporaryDirectory() as directory:
    units = []
    for unit in sorted(pathlib.Path(sys.argv[1], "deploy/systemd").glob("aliquotd.*")):
        if unit.suffix not in (".service", ".socket"):
            continue
        text = unit.read_text()
        assert unit.suffix != ".service" or "ExecStart=/usr/bin/aliquotd\n" in text, "what does it start?"
        units.append(pathlib.Path(directory, unit.name))
        units[-1].write_text(text.replace("ExecStart=/usr/bin/aliquotd", "ExecStart=/bin/true"))
    assert len(units) == 2, units
    verified = subprocess.run(["systemd-analyze", "verify", "--man=no", *map(str, units)], capture_output=True, text=True)
    said = [line for line in (verified.stdout + verified.stderr).splitlines() if "aliquotd" in line]
    print("\n".join(said))
    sys.exit(1 if said or verified.returncode else 0)
