#!/usr/bin/env python3
"""usage: interposer_instructions.py BUILD_DIR -- how many instructions account and pointer table
take for an allocation and its free, and what is added to a call that is passed on, to cuMemAlloc
with cuMemFree and to a launch through the open gate, counted by callgrind: the difference of two
runs, so that start and exit do not count. Prints JSON."""
import json, pathlib, re, subprocess, sys, tempfile

program = pathlib.Path(sys.argv[1]) / "bin" / "interposer_bench"


def instructions(what, times):
    with tempfile.TemporaryDirectory() as where:
        done = subprocess.run(["valgrind", "--tool=callgrind",
                               f"--callgrind-out-file={where}/out", program, "count", what, str(times)],
                              capture_output=True, text=True, check=True)
    return int(re.search(r"Collected : (\d+)", done.stderr)[1])


FEW, MANY = 2000, 12000


def each(what):
    return (instructions(what, MANY) - instructions(what, FEW)) / (MANY - FEW)


def added(what):
    return each(what) - each(f"{what}_direct")


print(json.dumps({"bench": "interposer_instructions", "account_pair": each("account"),
                  "pass": added("pass"), "pair": added("pair"), "launch": added("launch")}))
