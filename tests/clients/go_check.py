#!/usr/bin/env python3
"""go-nvml and go-nvlib on a simulated a100x8 or in a share of it.

usage: go_check.py PROGRAM -- go/main.go, built
"""
import subprocess
import sys

import surroundings
from check import expect

PROFILES = {"1g.10gb", "1g.10gb+me", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"}

run = subprocess.run(sys.argv[1:2], capture_output=True, text=True, timeout=60)
expect("what went wrong", run.stderr, "")
lines = [line.split(" ", 1) for line in run.stdout.splitlines()]
facts = dict(lines)
expect("driver", facts["driver"], surroundings.driver)
expect("CUDA", facts["cuda"], str(surroundings.cuda_number))
expect("GPUs", facts["gpus"], str(surroundings.gpus))
wanted = f"NVIDIA A100-SXM4-80GB {surroundings.nvml_total} 8.0 Ampere true false"
expect("each GPU", [text for kind, text in lines if kind == "gpu"],
       [f"{i} {wanted}" for i in range(surroundings.gpus)])
# A profile's name is counted from the GPU's memory, which a share has less of.
found = {text for kind, text in lines if kind == "profile"}
if not surroundings.in_share:
    expect("MIG profiles that are missing", sorted(PROFILES - found), [])
print(f"go-nvml and go-nvlib (simulated, {surroundings.where}): all as expected")
