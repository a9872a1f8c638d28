"""Prints the total memory of its GPU as the driver says, and the lease's own mark: total.py."""
import ctypes

cuda = ctypes.CDLL("libcuda.so.1")
device, total = ctypes.c_int(), ctypes.c_size_t()
for result in (cuda.cuInit(0), cuda.cuDeviceGet(ctypes.byref(device), 0),
               cuda.cuDeviceTotalMem_v2(ctypes.byref(total), device)):
    if result != 0:
        raise SystemExit(f"no GPU: {result}")
print(total.value)
