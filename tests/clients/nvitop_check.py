#!/usr/bin/env python3
"""nvitop --once on a simulated a100x8: its table, idle and with a program on GPU 1."""
import re
import time

from check import Load, client, expect

HEAD = "NVITOP 1.7.2       Driver Version: 580.65.06      CUDA Driver Version: 13.0"
IDLE = ["│   0  A100-SXM4-80GB        On │ 00000000:07:00.0 Off │ Disabled           0 │",
        "│ N/A   31C   P0     62W / 400W │        0B / 80.00GiB │      0%      Default │"]

lines = client("nvitop", "--once").splitlines()
expect("head", any(HEAD in line for line in lines), True)
first = next(i for i, line in enumerate(lines) if line.startswith("│   0 "))
expect("rows of GPU 0", [line[:79] for line in lines[first:first + 2]], IDLE)
expect("GPUs", sum(bool(re.match(r"│ +\d  A100-SXM4-80GB", line)) for line in lines), 8)
expect("processes", any("No running processes found" in line for line in lines), True)

with Load(gpu=1, mib=1000, percent=50) as load:
    time.sleep(1.2)
    lines = client("nvitop", "--once").splitlines()
    rows = [line for line in lines if f" {load.pid} " in line and "1430MiB" in line]
    expect("rows of the program", len(rows), 1)
    expect("its GPU", rows[0].split()[1], "1")
    used = next(i for i, line in enumerate(lines) if line.startswith("│   1 ")) + 1
    expect("memory of GPU 1", "1430MiB / 80.00GiB" in lines[used], True)
print("nvitop (simulated): table as expected")
