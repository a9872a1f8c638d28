"""Prints a program's view of its GPUs, through NVIDIA's own Python bindings."""
import pynvml
from cuda.bindings import driver as cuda


def ok(answer):
    result, *values = answer
    if result != cuda.CUresult.CUDA_SUCCESS:
        raise SystemExit(f"{result}")
    return values[0] if len(values) == 1 else values


pynvml.nvmlInit()
print("GPUs listed by NVML:", pynvml.nvmlDeviceGetCount())
handle = pynvml.nvmlDeviceGetHandleByIndex(0)
memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
print("name:", pynvml.nvmlDeviceGetName(handle))
print("total by NVML:", memory.total)
print("used by NVML:", memory.used)

ok(cuda.cuInit(0))
print("GPUs counted by the CUDA driver:", ok(cuda.cuDeviceGetCount()))
device = ok(cuda.cuDeviceGet(0))
ok(cuda.cuCtxSetCurrent(ok(cuda.cuDevicePrimaryCtxRetain(device))))
free, total = ok(cuda.cuMemGetInfo())
print("total by cuMemGetInfo:", total)
print("free by cuMemGetInfo:", free)
result, _ = cuda.cuMemAlloc(total)
print("an allocation of all of it:", result.name)
