#!/usr/bin/env python3
"""usage: library_test.py LIBALIQUOT TABLE... -- the built library keeps its promises to the loader:
it exports the tables' rows, dlsym and dlvsym, no more and no less; takes nothing newer than glibc
2.17; needs libc and libdl only; and maps less than 1 MiB."""
import re
import subprocess
import sys

library, tables = sys.argv[1], sys.argv[2:]
failures = []


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


rows = {"dlsym", "dlvsym"}
for table in tables:
    rows |= set(re.findall(r"^ALIQUOT_ENTRY\((\w+),", open(table).read(), re.M))
symbols = [line.split() for line in output("nm", "-D", "--defined-only", library).splitlines()]
exported = {fields[-1] for fields in symbols}
if exported != rows:
    failures.append(f"exported but no row: {sorted(exported - rows)[:5]}, "
                    f"row but not exported: {sorted(rows - exported)[:5]}")

for needed in re.findall(r"GLIBC_(\d+)\.(\d+)", output("objdump", "-T", library)):
    if (int(needed[0]), int(needed[1])) > (2, 17):
        failures.append(f"needs GLIBC_{needed[0]}.{needed[1]}")
if "GLIBC_PRIVATE" in output("objdump", "-T", library):
    failures.append("needs GLIBC_PRIVATE")

needs = set(re.findall(r"NEEDED.*\[(.*)\]", output("readelf", "-d", library)))
if needs - {"libc.so.6", "libdl.so.2"}:
    failures.append(f"needs {sorted(needs)}")

mapped = sum(int(fields[5], 16)
             for line in output("readelf", "-lW", library).splitlines()
             if (fields := line.split()) and fields[0] == "LOAD")
if not 0 < mapped < 1 << 20:
    failures.append(f"maps {mapped} bytes")

print("\n".join(failures) or f"{len(exported)} exports, {mapped} bytes mapped")
sys.exit(bool(failures))
