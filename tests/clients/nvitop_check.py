#!/usr/bin/env python3
"""nvitop --once on a simulated a100x8 or in a share of it: its table, idle and with a program on the
last GPU."""
import re
import time

import surroundings
from check import Load, client, expect

HEAD = (f"NVITOP 1.7.2       Driver Version: {surroundings.driver}"
        f"      CUDA Driver Version: {surroundings.cuda}")
TOTAL = "4096MiB" if surroundings.in_share else "80.00GiB"
IDLE = ["│   0  A100-SXM4-80GB        On │ 00000000:07:00.0 Off │ Disabled           0 │",
        f"│ N/A   31C   P0     62W / 400W │ {f'0B / {TOTAL}':>20} │      0%      Default │"]
LAST = surroundings.gpus - 1

lines = client("nvitop", "--once").splitlines()
expect("head", any(HEAD in line for line in lines), True)
first = next(i for i, line in enumerate(lines) if line.startswith("│   0 "))
expect("rows of GPU 0", [line[:79] for line in lines[first:first + 2]], IDLE)
expect("GPUs", sum(bool(re.match(r"│ +\d  A100-SXM4-80GB", line)) for line in lines), surroundings.gpus)
expect("processes", any("No running processes found" in line for line in lines), True)

with Load(gpu=LAST, mib=1000, percent=50) as load:
    time.sleep(1.2)
    lines = client("nvitop", "--once").splitlines()
    rows = [line for line in lines if f" {load.pid} " in line and "1430MiB" in line]
    expect("rows of the program", len(rows), 1)
    expect("its GPU", rows[0].split()[1], str(LAST))
    used = next(i for i, line in enumerate(lines) if line.startswith(f"│   {LAST} ")) + 1
    expect("its memory", f"1430MiB / {TOTAL}" in lines[used], True)
print(f"nvitop (simulated, {surroundings.where}): table as expected")
