#!/usr/bin/env python3
"""cudarc and nvml-wrapper on a simulated a100x8 or in a share of it.

usage: rust_check.py PROGRAM -- rust/src/main.rs, built
"""
import subprocess
import sys

import surroundings
from check import expect

run = subprocess.run(sys.argv[1:2], capture_output=True, text=True, timeout=60)
expect("what went wrong", run.stderr, "")
expect("facts", run.stdout.splitlines(), [
    f"gpus {surroundings.gpus}",
    "name NVIDIA A100-SXM4-80GB",
    "capability (8, 0)",
    "sums 4 4",  # one launch, and a captured one three times
    f"driver {surroundings.driver}",
    f"nvml NVIDIA A100-SXM4-80GB {surroundings.nvml_total}",
    "processes 1",
    "power true of 400000",
])
print(f"cudarc and nvml-wrapper (simulated, {surroundings.where}): all as expected")
