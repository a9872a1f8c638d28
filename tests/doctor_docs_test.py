#!/usr/bin/env python3
"""docs/doctor.md shows the table of findings as the program prints it. usage: ALIQUOT DOCS"""
import re, subprocess, sys

program, docs = sys.argv[1:]
printed = subprocess.run([program, "doctor", "--codes"], check=True, capture_output=True, text=True).stdout
told = [line.split("\t") for line in printed.splitlines()]
shown = [[cell.strip() for cell in line.strip("|\n ").split(" | ")]
         for line in open(f"{docs}/doctor.md") if re.match(r"\| [A-Z0-9_]+ \|", line)]
missing = [row for row in told if row not in shown]
extra = [row for row in shown if row not in told]
for row in missing: print("not in doctor.md:", row)
for row in extra: print("not in the program:", row)
sys.exit(bool(missing or extra or not told))
