#!/usr/bin/env python3
"""gpustat on a simulated a100x8 or in a share of it: its JSON and its table, idle and with a program
on GPU 1, or on the only one."""
import json
import time

import surroundings
from check import CONTEXT_MIB, Load, client, expect, expect_between

MIB = surroundings.nvml_total >> 20
BUSY = 0 if surroundings.in_share else 1

idle = json.loads(client("gpustat", "--json"))["gpus"]
expect("GPUs", len(idle), surroundings.gpus)
for index, gpu in enumerate(idle):
    expect("index", gpu["index"], index)
    expect("name", gpu["name"], "NVIDIA A100-SXM4-80GB")
    expect("total", gpu["memory.total"], MIB)
    expect("used", gpu["memory.used"], 0)
    expect("utilisation", gpu["utilization.gpu"], 0)
    expect("temperature", gpu["temperature.gpu"], 31)
    expect("power", (gpu["power.draw"], gpu["enforced.power.limit"]), (62, 400))
    expect("processes", gpu["processes"], [])
expect("UUIDs", len({gpu["uuid"] for gpu in idle}), surroundings.gpus)

with Load(gpu=BUSY, mib=1000, percent=50) as load:
    time.sleep(1.2)
    busy = json.loads(client("gpustat", "--json"))["gpus"]
    expect("used", busy[BUSY]["memory.used"], 1000 + CONTEXT_MIB)
    expect("used elsewhere", [gpu["memory.used"] for gpu in busy if gpu["index"] != BUSY],
           [0] * (surroundings.gpus - 1))
    expect("pids", [p["pid"] for p in busy[BUSY]["processes"]], [load.pid])
    expect("its memory", busy[BUSY]["processes"][0]["gpu_memory_usage"], 1000 + CONTEXT_MIB)
    expect_between("utilisation", busy[BUSY]["utilization.gpu"], 20, 80)
    table = client("gpustat", "--no-color", "--show-pid").splitlines()
    row = f" 1430 / {MIB:5} MB | "
    expect("its row", [row in line and line.endswith(f"/{load.pid}(1430M)")
                       for line in table[1:]].index(True), BUSY)
    if not surroundings.in_share:
        expect("row of GPU 0", table[1],
               "[0] NVIDIA A100-SXM4-80GB | 31°C,   0 % |     0 / 81920 MB |")

time.sleep(0.2)
after = json.loads(client("gpustat", "--json"))["gpus"]
expect("used after the end", after[BUSY]["memory.used"], 0)
print(f"gpustat (simulated, {surroundings.where}): table and JSON as expected")
