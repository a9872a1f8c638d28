"""Holds BYTES of GPU memory and always has work for the GPU, kernels of KERNEL_US: burn.py BYTES KERNEL_US [once].
Prints "held" when it has the memory and the first kernels have ended (once: and ends); what is refused ends it."""
import collections, ctypes, sys

SPIN = b"""
.version 7.0
.target sm_70
.address_size 64
.visible .entry aliquot_spin(.param .u64 duration_ns)
{
  ret;
}
"""  # the simulated driver knows it by its name and takes the time from its argument
BATCH, AHEAD = 8, 4  # launches between two events, events that may be open

cuda = ctypes.CDLL("libcuda.so.1")


def ok(name, *arguments):
    result = getattr(cuda, name)(*arguments)
    if result != 0:
        raise SystemExit(f"{name}: {result}")


device, context, pointer = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
module, kernel, stream = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
ok("cuInit", 0)
ok("cuDeviceGet", ctypes.byref(device), 0)
ok("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
ok("cuCtxSetCurrent", context)
ok("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(int(sys.argv[1])))
ok("cuModuleLoadData", ctypes.byref(module), SPIN)
ok("cuModuleGetFunction", ctypes.byref(kernel), module, b"aliquot_spin")
ok("cuStreamCreate", ctypes.byref(stream), 1)
duration = ctypes.c_uint64(int(sys.argv[2]) * 1000)
arguments = (ctypes.c_void_p * 1)(ctypes.cast(ctypes.byref(duration), ctypes.c_void_p))
events = collections.deque()
held = False
while True:
    for _ in range(BATCH):
        ok("cuLaunchKernel", kernel, 1, 1, 1, 32, 1, 1, 0, stream, arguments, None)
    event = ctypes.c_void_p()
    ok("cuEventCreate", ctypes.byref(event), 2)
    ok("cuEventRecord", event, stream)
    events.append(event)
    if len(events) < AHEAD:
        continue
    oldest = events.popleft()
    ok("cuEventSynchronize", oldest)
    ok("cuEventDestroy_v2", oldest)
    if not held:
        print("held", flush=True)
        if sys.argv[3:] == ["once"]:
            break
        held = True
