#!/usr/bin/env python3
"""gpustat on a simulated a100x8: its JSON and its table, idle and with a program on GPU 1."""
import json
import time

from check import CONTEXT_MIB, Load, client, expect, expect_between

idle = json.loads(client("gpustat", "--json"))["gpus"]
expect("GPUs", len(idle), 8)
for index, gpu in enumerate(idle):
    expect("index", gpu["index"], index)
    expect("name", gpu["name"], "NVIDIA A100-SXM4-80GB")
    expect("total", gpu["memory.total"], 81920)
    expect("used", gpu["memory.used"], 0)
    expect("utilisation", gpu["utilization.gpu"], 0)
    expect("temperature", gpu["temperature.gpu"], 31)
    expect("power", (gpu["power.draw"], gpu["enforced.power.limit"]), (62, 400))
    expect("processes", gpu["processes"], [])
expect("UUIDs", len({gpu["uuid"] for gpu in idle}), 8)

with Load(gpu=1, mib=1000, percent=50) as load:
    time.sleep(1.2)
    busy = json.loads(client("gpustat", "--json"))["gpus"]
    expect("used on 1", busy[1]["memory.used"], 1000 + CONTEXT_MIB)
    expect("used on 0", busy[0]["memory.used"], 0)
    expect("pids", [p["pid"] for p in busy[1]["processes"]], [load.pid])
    expect("its memory", busy[1]["processes"][0]["gpu_memory_usage"], 1000 + CONTEXT_MIB)
    expect_between("utilisation of 1", busy[1]["utilization.gpu"], 20, 80)
    table = client("gpustat", "--no-color", "--show-pid").splitlines()
    expect("row of GPU 0", table[1], "[0] NVIDIA A100-SXM4-80GB | 31°C,   0 % |     0 / 81920 MB |")
    expect("row of GPU 1", table[2].endswith(f"/{load.pid}(1430M)"), True)

expect("used after the end", json.loads(client("gpustat", "--json"))["gpus"][1]["memory.used"], 0)
print("gpustat (simulated): table and JSON as expected")
