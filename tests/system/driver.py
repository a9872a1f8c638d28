"""Small programs on the driver API by ctypes: driver.py WHAT [ARGUMENT...]; prints one fact a line."""
import ctypes, os, subprocess, sys, time

cuda = ctypes.CDLL(os.environ.get("TEST_LIBCUDA", "libcuda.so.1"))
u64, vp = ctypes.c_uint64, ctypes.c_void_p


def ok(result, what):
    if result != 0:
        raise SystemExit(f"{what}: {result}")


def open_gpu(gpu=0):
    ok(cuda.cuInit(0), "cuInit")
    device, context = ctypes.c_int(), vp()
    ok(cuda.cuDeviceGet(ctypes.byref(device), gpu), "cuDeviceGet")
    ok(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device), "cuDevicePrimaryCtxRetain")
    ok(cuda.cuCtxSetCurrent(context), "cuCtxSetCurrent")


def allocate(size):
    pointer = u64()
    return cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(size)), pointer


def info():
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    ok(cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)), "cuMemGetInfo")
    print("free", free.value)
    print("total", total.value)


def view():
    open_gpu()
    count = ctypes.c_int()
    ok(cuda.cuDeviceGetCount(ctypes.byref(count)), "cuDeviceGetCount")
    print("gpus", count.value)
    info()


def by_address():
    """As NVIDIA's bindings come in: cuGetProcAddress is the first call."""
    function, status = vp(), ctypes.c_int()
    ok(cuda.cuGetProcAddress_v2(b"cuInit", ctypes.byref(function), 2000, u64(0),
                                ctypes.byref(status)), "cuGetProcAddress")
    ok(ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint)(function.value)(0), "cuInit by its address")
    view()


def alloc(size):
    open_gpu()
    print("result", allocate(int(size))[0])


def hold(size, seconds="60"):
    open_gpu()
    print("result", allocate(int(size))[0], flush=True)
    time.sleep(float(seconds))


def churn(seconds):
    """Allocates and frees until the time is over; prints how often, and what went wrong."""
    open_gpu()
    end, rounds, errors = time.monotonic() + float(seconds), 0, 0
    while time.monotonic() < end:
        result, pointer = allocate(1 << 20)
        errors += result != 0
        if result == 0:
            ok(cuda.cuMemFree_v2(pointer), "cuMemFree")
        rounds += 1
    print("rounds", rounds)
    print("errors", errors)


def fork(size):
    """The child of a fork attaches anew and is charged for itself."""
    open_gpu()
    ok(allocate(int(size))[0], "cuMemAlloc")
    print("parent holds", flush=True)
    if os.fork() == 0:
        os.execv(sys.executable, [sys.executable, __file__, "hold", size])
    time.sleep(60)


def exec_stranger(size, go):
    """Becomes a program that never attaches when the file `go` is there: what it held is gone."""
    open_gpu()
    print("result", allocate(int(size))[0], flush=True)
    while not os.path.exists(go):
        time.sleep(0.005)
    os.execv("/bin/sleep", ["sleep", "60"])


def closefrom(size):
    """Closes every descriptor and stays charged."""
    open_gpu()
    print("result", allocate(int(size))[0], flush=True)
    os.closerange(3, 4096)
    time.sleep(60)


globals()[sys.argv[1]](*sys.argv[2:])
