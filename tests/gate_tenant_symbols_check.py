#!/usr/bin/env python3
"""Fails when the tenant's side of the gate needs a library: it runs inside other people's processes.

Usage: gate_tenant_symbols_check.py libgate.a
"""
import re, subprocess, sys

TENANT = {"tenant.cc.o", "estimates.cc.o", "window.cc.o"}
ALLOWED = re.compile(r"^(memcpy|memset|memmove|_GLOBAL_OFFSET_TABLE_)$")

listed = subprocess.run(["nm", sys.argv[1]], capture_output=True, text=True, check=True).stdout
member, seen, defined, needed = "", set(), set(), []
for line in listed.splitlines():
    if line.endswith(":"):
        member = line[:-1]
        seen.add(member)
    elif member in TENANT and line.strip():
        kind, name = line.split()[-2:]
        (needed.append((member, name)) if kind == "U" else defined.add(name))

bad = [f"{member} needs {name}" for member, name in needed
       if name not in defined and not ALLOWED.match(name)]
bad += [f"{name} is not in the library" for name in TENANT - seen]
print("\n".join(bad))
sys.exit(bool(bad))
