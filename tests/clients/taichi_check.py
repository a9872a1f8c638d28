#!/usr/bin/env python3
"""taichi on a simulated a100x8: it compiles by its own LLVM to PTX. It falls back to the CPU without a
word where a driver does not please it, so the architecture it really took is what is checked."""
import pynvml as nvml
import taichi as ti

import surroundings
from check import CONTEXT_MIB, expect


def main():
    ti.init(arch=ti.cuda, device_memory_GB=1, log_level=ti.ERROR, offline_cache=False)
    expect("architecture", ti.cfg.arch, ti.cuda)
    squares = ti.field(ti.f32, shape=1024)

    @ti.kernel
    def fill():
        for i in squares:
            squares[i] = i * i

    fill()  # timed, not computed
    ti.sync()
    values = squares.to_numpy()
    expect("read back", values.shape, (1024,))
    nvml.nvmlInit()
    held = nvml.nvmlDeviceGetComputeRunningProcesses(nvml.nvmlDeviceGetHandleByIndex(0))
    expect("processes by NVML", len(held), 1)
    expect("more than a context", held[0].usedGpuMemory >> 20 > CONTEXT_MIB, True)
    print(f"taichi (simulated, {surroundings.where}): ran on CUDA")


if __name__ == "__main__":
    main()
