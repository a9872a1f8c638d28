#!/usr/bin/env python3
"""py3nvml, bindings of 2020, on a simulated a100x8: the oldest forms of NVML's calls and structs."""
import os

from py3nvml import py3nvml as nvml
from py3nvml.utils import get_free_gpus

import surroundings
from check import CONTEXT_MIB, Load, expect


def main():
    nvml.nvmlInit()
    expect("GPUs", nvml.nvmlDeviceGetCount(), 8)
    gpu = nvml.nvmlDeviceGetHandleByIndex(3)
    expect("name", nvml.nvmlDeviceGetName(gpu), "NVIDIA A100-SXM4-80GB")
    memory = nvml.nvmlDeviceGetMemoryInfo(gpu)
    expect("sum", memory.used + memory.free, memory.total)
    with Load(gpu=3, mib=1000, percent=0) as load:
        processes = nvml.nvmlDeviceGetComputeRunningProcesses(gpu)
        expect("processes", [(p.pid, p.usedGpuMemory >> 20) for p in processes],
               [(load.pid, 1000 + CONTEXT_MIB)])
        expect("free GPUs", [i for i, free in enumerate(get_free_gpus()) if not free], [3])
    nvml.nvmlShutdown()
    expect("own pid is no GPU process", os.getpid() in [p.pid for p in processes], False)
    print(f"py3nvml (simulated, {surroundings.where}): all as expected")


if __name__ == "__main__":
    main()
