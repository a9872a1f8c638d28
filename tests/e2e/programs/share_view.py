"""What a container sees of its GPUs: one fact a line. With an argument also tries to allocate that many bytes."""
import ctypes, sys

import pynvml

pynvml.nvmlInit()
print("nvml gpus:", pynvml.nvmlDeviceGetCount())
handle = pynvml.nvmlDeviceGetHandleByIndex(0)
print("uuid:", pynvml.nvmlDeviceGetUUID(handle))
print("nvml total:", pynvml.nvmlDeviceGetMemoryInfo(handle).total)

cuda = ctypes.CDLL("libcuda.so.1")


def ok(result, what):
    if result != 0:
        raise SystemExit(f"{what}: {result}")


ok(cuda.cuInit(0), "cuInit")
count, device, context = ctypes.c_int(), ctypes.c_int(), ctypes.c_void_p()
ok(cuda.cuDeviceGetCount(ctypes.byref(count)), "cuDeviceGetCount")
print("gpus:", count.value)
ok(cuda.cuDeviceGet(ctypes.byref(device), 0), "cuDeviceGet")
ok(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device), "cuDevicePrimaryCtxRetain")
ok(cuda.cuCtxSetCurrent(context), "cuCtxSetCurrent")
free, total = ctypes.c_size_t(), ctypes.c_size_t()
ok(cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)), "cuMemGetInfo")
print("total:", total.value)


def allocate(size):
    pointer = ctypes.c_uint64()
    result = cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(size))
    if result == 0:
        ok(cuda.cuMemFree_v2(pointer), "cuMemFree")
    return result


print("within the limit:", allocate(free.value * 3 // 4))
print("past the limit:", allocate(total.value))  # 2: CUDA_ERROR_OUT_OF_MEMORY
