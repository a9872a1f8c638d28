"""A program that uses one GPU through the driver API alone: holds memory, runs a spin kernel.

usage: cuda_load.py GPU MIB SECONDS PERCENT -- says "ready" when both have begun
"""
import ctypes
import sys
import time

PTX = b""".version 7.0
.target sm_50
.address_size 64
.visible .entry aliquot_spin(.param .u64 nanoseconds) { ret; }
"""
PERIOD_NS = 20_000_000


def checked(code):
    if code != 0:
        sys.exit(f"cuda_load: CUresult {code}")


def main():
    gpu, mib, seconds, percent = (int(word) for word in sys.argv[1:5])
    cuda = ctypes.CDLL("libcuda.so.1")
    context, module, function = (ctypes.c_void_p() for _ in range(3))
    pointer = ctypes.c_uint64()
    checked(cuda.cuInit(0))
    checked(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), gpu))
    checked(cuda.cuCtxSetCurrent(context))
    if mib:
        checked(cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(mib << 20)))
    checked(cuda.cuModuleLoadData(ctypes.byref(module), PTX))
    checked(cuda.cuModuleGetFunction(ctypes.byref(function), module, b"aliquot_spin"))
    busy = ctypes.c_uint64(PERIOD_NS * percent // 100)
    arguments = (ctypes.c_void_p * 1)(ctypes.cast(ctypes.byref(busy), ctypes.c_void_p))
    end = time.monotonic() + seconds
    print("ready", flush=True)
    while time.monotonic() < end:
        if percent:
            checked(cuda.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, None, arguments, None))
            checked(cuda.cuCtxSynchronize())
        time.sleep(PERIOD_NS * (100 - percent) / 100 / 1e9)


if __name__ == "__main__":
    main()
