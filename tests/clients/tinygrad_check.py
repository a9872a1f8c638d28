#!/usr/bin/env python3
"""tinygrad on a simulated a100x8 or in a share of it: it compiles its kernels to PTX itself; they
are timed, not computed, so what is checked is what it copies, counts, times and is refused."""
import contextlib
import io
import os

os.environ.update(DEV="CUDA", CC="gcc", DEBUG="2", CACHELEVEL="0")

import pynvml as nvml
from tinygrad import Device, GlobalCounters, Tensor, TinyJit

import surroundings
from check import expect, expect_between

MIB = 1 << 20


def used_bytes():
    """Of GPU 0, by NVML."""
    gpu = nvml.nvmlDeviceGetHandleByIndex(0)
    return sum(p.usedGpuMemory for p in nvml.nvmlDeviceGetComputeRunningProcesses(gpu))


def check_copies():
    values = [float(i) for i in range(1000)]
    expect("there and back", Tensor(values, device="CUDA").realize().tolist(), values)
    if not surroundings.in_share:
        there = Tensor(values, device="CUDA").to("CUDA:1").realize()
        expect("by way of a peer", there.to("CUDA").realize().tolist(), values)


def check_kernels():
    a, b = Tensor.empty(1024, 1024).realize(), Tensor.empty(1024, 1024).realize()
    GlobalCounters.reset()
    (a @ b).relu().realize()
    expect_between("kernels", GlobalCounters.kernel_count, 1, 3)
    expect_between("operations", GlobalCounters.global_ops, 2 * 1024**3, 3 * 1024**3)
    expect_between("seconds by its events", GlobalCounters.time_sum_s, 1e-6, 1.0)


def check_jit():
    """Its third call is a CUDA graph."""
    @TinyJit
    def step(x):
        return (x * 2).contiguous().relu().contiguous().sum(axis=0).realize()

    inputs = [Tensor.empty(256, 256).realize() for _ in range(5)]
    for x in inputs:
        expect("shape", step(x).shape, (256,))
    Device["CUDA"].synchronize()


def check_memory():
    before = used_bytes()
    held = Tensor.ones(64 * MIB, dtype="uint8").contiguous().realize()
    expect_between("taken, by NVML", used_bytes() - before, 64 * MIB, 66 * MIB)
    expect("size", held.nbytes(), 64 * MIB)
    try:
        Tensor.ones(surroundings.driver_total, dtype="uint8").contiguous().realize()
    except MemoryError:
        pass
    else:
        expect("all of the GPU", "granted", "MemoryError")


def main():
    nvml.nvmlInit()
    expect("default", Device.DEFAULT, "CUDA")
    said = io.StringIO()  # each kernel with its time
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        check_copies()
        check_kernels()
        check_jit()
        check_memory()
    print(f"tinygrad (simulated, {surroundings.where}): all as expected")


if __name__ == "__main__":
    main()
