"""Small programs on the driver API by ctypes: driver.py WHAT [ARGUMENT...]; prints one fact a line."""
import ctypes, os, socket, subprocess, sys, time

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


def alloc(*sizes):
    open_gpu()
    for size in sizes:
        print("result", allocate(int(size))[0])


def alloc_by_address(size):
    open_gpu()
    function, pointer = vp(), u64()
    ok(cuda.cuGetProcAddress(b"cuMemAlloc", ctypes.byref(function), 3020, u64(0)),
       "cuGetProcAddress")
    call = ctypes.CFUNCTYPE(ctypes.c_int, vp, ctypes.c_size_t)(function.value)
    print("result", call(ctypes.addressof(pointer), int(size)))


def health(gpu):
    """What NVML tells of a GPU."""
    nvml, device = ctypes.CDLL("libnvidia-ml.so.1"), vp()
    count, celsius = ctypes.c_ulonglong(), ctypes.c_uint()
    ok(nvml.nvmlInit_v2(), "nvmlInit")
    ok(nvml.nvmlDeviceGetHandleByIndex_v2(int(gpu), ctypes.byref(device)), "nvmlDeviceGetHandle")
    ok(nvml.nvmlDeviceGetTotalEccErrors(device, 0, 0, ctypes.byref(count)),
       "nvmlDeviceGetTotalEccErrors")
    ok(nvml.nvmlDeviceGetTemperature(device, 0, ctypes.byref(celsius)), "nvmlDeviceGetTemperature")
    print("corrected", count.value)
    print("celsius", celsius.value)


def wear(gpu):
    """What NVML tells of a GPU's spare rows and of its links."""
    nvml, device = ctypes.CDLL("libnvidia-ml.so.1"), vp()
    rows, errors, link = [ctypes.c_uint() for _ in range(4)], ctypes.c_ulonglong(), 0
    ok(nvml.nvmlInit_v2(), "nvmlInit")
    ok(nvml.nvmlDeviceGetHandleByIndex_v2(int(gpu), ctypes.byref(device)), "nvmlDeviceGetHandle")
    ok(nvml.nvmlDeviceGetRemappedRows(device, *map(ctypes.byref, rows)),
       "nvmlDeviceGetRemappedRows")
    print("rows", *(count.value for count in rows))
    while nvml.nvmlDeviceGetNvLinkErrorCounter(device, link, 2, ctypes.byref(errors)) == 0:
        print("link", link, "errors", errors.value)
        link += 1


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


def exec_with_descriptors(size):
    """Becomes a program that never attaches and keeps the driver's descriptors, and so the memory."""
    open_gpu()
    print("result", allocate(int(size))[0], flush=True)
    for descriptor in map(int, os.listdir("/proc/self/fd")):
        try:
            os.set_inheritable(descriptor, True)
        except OSError:
            pass  # the listing's own
    os.execv("/bin/sleep", ["sleep", "60"])


class Handle(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_ubyte * 64)]


def export_ipc(size, go):
    """Gives memory to another program, and ends when the file `go` is there: the other keeps it."""
    open_gpu()
    result, pointer = allocate(int(size))
    ok(result, "cuMemAlloc")
    handle = Handle()
    ok(cuda.cuIpcGetMemHandle(ctypes.byref(handle), pointer), "cuIpcGetMemHandle")
    hand_to("import_ipc", bytes(handle.bytes).hex(), [], go,
            lambda: ok(cuda.cuMemFree_v2(pointer), "cuMemFree"))


def import_ipc(handle):
    open_gpu()
    pointer = u64()
    ok(cuda.cuIpcOpenMemHandle_v2(ctypes.byref(pointer), Handle.from_buffer_copy(
        bytes.fromhex(handle)), ctypes.c_uint(1)), "cuIpcOpenMemHandle")
    print("imported", flush=True)
    time.sleep(60)


class Properties(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("handles", ctypes.c_int), ("place", ctypes.c_int),
                ("id", ctypes.c_int), ("metadata", vp), ("flags", ctypes.c_ubyte * 8)]


def exported(size, gpu=0):
    """Memory of cuMemCreate, and a descriptor for it."""
    handle, shareable = u64(), ctypes.c_int(-1)
    ok(cuda.cuMemCreate(ctypes.byref(handle), ctypes.c_size_t(int(size)),
                        ctypes.byref(Properties(1, 1, 1, gpu)), u64(0)), "cuMemCreate")
    ok(cuda.cuMemExportToShareableHandle(ctypes.byref(shareable), handle, 1, u64(0)),
       "cuMemExportToShareableHandle")
    return handle, shareable.value


def export_descriptor(size, go):
    """The same with memory of cuMemCreate and a descriptor."""
    open_gpu()
    handle, shareable = exported(size)
    hand_to("import_descriptor", str(shareable), [shareable], go,
            lambda: ok(cuda.cuMemRelease(handle), "cuMemRelease"))


def export_to(size, gpu, *command):
    """Runs a command whose last argument becomes a descriptor of this program's memory."""
    open_gpu(int(gpu))
    _, shareable = exported(size, int(gpu))
    environment = {**os.environ, "LD_LIBRARY_PATH": ""}
    raise SystemExit(subprocess.call([*command, str(shareable)], pass_fds=[shareable],
                                     env=environment))


def import_descriptor(descriptor):
    open_gpu()
    handle = u64()
    ok(cuda.cuMemImportFromShareableHandle(ctypes.byref(handle), vp(int(descriptor)), 1),
       "cuMemImportFromShareableHandle")
    os.close(int(descriptor))
    print("imported", flush=True)
    time.sleep(60)


def hand_to(importer, argument, descriptors, go, release):
    child = subprocess.Popen([sys.executable, __file__, importer, argument], pass_fds=descriptors,
                             stdout=subprocess.PIPE, text=True)
    imported = child.stdout.readline().strip()
    release()
    print(imported, flush=True)
    while not os.path.exists(go):
        time.sleep(0.005)


def closefrom(size):
    """Closes every descriptor and stays charged."""
    open_gpu()
    print("result", allocate(int(size))[0], flush=True)
    os.closerange(3, 4096)
    time.sleep(60)


def launch_without_descriptors(seconds):
    """Closes every descriptor but the driver's own, which no driver could lose, and works on."""
    open_gpu()
    module, kernel, length = vp(), vp(), u64(500_000)
    ok(cuda.cuModuleLoadData(ctypes.byref(module), SPIN), "cuModuleLoadData")
    ok(cuda.cuModuleGetFunction(ctypes.byref(kernel), module, b"aliquot_spin"), "cuModuleGetFunction")
    parameters = (vp * 1)(ctypes.cast(ctypes.byref(length), vp))

    def work():
        ok(cuda.cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, None, parameters, None), "cuLaunchKernel")
        ok(cuda.cuCtxSynchronize(), "cuCtxSynchronize")

    work()
    for descriptor in map(int, os.listdir("/proc/self/fd")):
        if descriptor > 2 and not is_drivers(descriptor):
            try:
                os.close(descriptor)
            except OSError:
                pass  # the listing's own
    print("closed", flush=True)
    end = time.monotonic() + float(seconds)
    while time.monotonic() < end:
        work()


SPIN = b""".version 7.0
.target sm_70
.address_size 64
.visible .entry aliquot_spin(.param .u64 duration_ns)
{
  ret;
}
"""


def is_drivers(descriptor):
    """Its socket to the device server, its memory, its bell."""
    try:
        target = os.readlink(f"/proc/self/fd/{descriptor}")
        if not target.startswith("socket:"):
            return target.startswith("/memfd:aliquot-sim") or "eventfd" in target
        with socket.socket(fileno=os.dup(descriptor)) as one:
            return "/sim/" in one.getpeername()
    except OSError:
        return False


globals()[sys.argv[1]](*sys.argv[2:])
