#!/usr/bin/env python3
"""triton on a simulated a100x8, without torch and NVIDIA's runtime: it compiles a kernel to PTX,
loads it, asks its attributes and launches it on memory that the driver API gave.

TRITON_PTXAS_PATH names a program that copies PTX through, as the simulated driver reads PTX."""
import ctypes

import triton
import triton.language as tl
from triton.runtime import driver

import surroundings
from check import expect

cuda = ctypes.CDLL("libcuda.so.1")


def ok(code):
    expect("CUresult", code, 0)


class Memory:
    """All that triton asks of a tensor."""

    dtype = "float32"

    def __init__(self, words):
        self.at = ctypes.c_uint64()
        ok(cuda.cuMemAlloc_v2(ctypes.byref(self.at), ctypes.c_size_t(words * 4)))

    def data_ptr(self):
        return self.at.value


@triton.jit
def add(a, b, out, count, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = place < count
    tl.store(out + place, tl.load(a + place, mask=inside) + tl.load(b + place, mask=inside),
             mask=inside)


class Device:
    """Stands for torch, which triton asks for the device and the stream that are current."""

    @staticmethod
    def get_current_device():
        return 0

    @staticmethod
    def get_current_stream(_):
        return 0


def main():
    context = ctypes.c_void_p()
    ok(cuda.cuInit(0))
    ok(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
    ok(cuda.cuCtxSetCurrent(context))
    active = driver.active
    active.get_current_device = Device.get_current_device
    active.get_current_stream = Device.get_current_stream
    target = active.get_current_target()
    expect("target", (target.backend, target.arch, target.warp_size), ("cuda", 80, 32))
    facts = active.utils.get_device_properties(0)
    expect("SMs", facts["multiprocessor_count"], 108)
    expect("shared memory", facts["max_shared_mem"], 166912)

    count = 4096
    a, b, out = (Memory(count) for _ in range(3))
    compiled = add[(count // 256,)](a, b, out, count, BLOCK=256)
    ok(cuda.cuCtxSynchronize())
    expect("its name", compiled.metadata.name, "add")
    expect("PTX", ".visible .entry add(" in compiled.asm["ptx"], True)
    expect("spilled registers", compiled.n_spills, 0)
    print(f"triton {triton.__version__} (simulated, {surroundings.where}): compiled, loaded and launched")


if __name__ == "__main__":
    main()
