"""Holds BYTES of GPU memory until it is ended: hold.py BYTES; prints "held" when it has them."""
import ctypes, sys, time

cuda = ctypes.CDLL("libcuda.so.1")
device, context, pointer = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
for result in (cuda.cuInit(0), cuda.cuDeviceGet(ctypes.byref(device), 0),
               cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device), cuda.cuCtxSetCurrent(context),
               cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(int(sys.argv[1])))):
    if result != 0:
        raise SystemExit(f"refused: {result}")
print("held", flush=True)
while True:
    time.sleep(60)
