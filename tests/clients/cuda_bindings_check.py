#!/usr/bin/env python3
"""cuda-bindings on a simulated a100x8 or in a share of it: what is taken of the GPU is what is
missing, and comes back; look-ups by name and version; sharing by descriptor and by IPC handle."""
import ctypes
import os
import subprocess
import sys
import time

import numpy
from cuda.bindings import driver as cu

import surroundings
from check import expect, expect_between
from surroundings import PTX

MIB = 1 << 20


def ok(answer):
    result, *values = answer
    if result != cu.CUresult.CUDA_SUCCESS:
        raise AssertionError(f"{result.name}")
    return values[0] if len(values) == 1 else values or None


def free_bytes():
    return ok(cu.cuMemGetInfo())[0]


class GivesBack:
    """What the block took of the GPU's memory is `taken` within it, and `kept` after it."""

    def __init__(self, what, kept=0):
        self.what = what
        self.kept = kept

    def __enter__(self):
        self.before = free_bytes()
        return self

    def taken(self, wanted):
        expect(f"taken by {self.what}", self.before - free_bytes(), wanted)

    def __exit__(self, kind, *_):
        if kind is None:
            expect(f"kept of {self.what}", self.before - free_bytes(), self.kept)


def check_look_ups():
    """The same function by both names; a version that the driver has not is not found."""
    library = ctypes.CDLL("libcuda.so.1")
    for version, symbol in ((3020, library.cuMemAlloc_v2), (2000, library.cuMemAlloc)):
        result, address, *_ = cu.cuGetProcAddress(b"cuMemAlloc", version, 0)
        expect("result", result.name, "CUDA_SUCCESS")
        expect(symbol.__name__, address, ctypes.cast(symbol, ctypes.c_void_p).value)
    result, *_ = cu.cuGetProcAddress(b"cuNoSuchCall", 13000, 0)
    expect("an unknown name", result.name, "CUDA_ERROR_NOT_FOUND")
    expect("the driver's version", ok(cu.cuDriverGetVersion()), surroundings.cuda_number)


def check_virtual_memory():
    properties = cu.CUmemAllocationProp()
    properties.type = cu.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    properties.location.type = cu.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    kind = cu.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
    properties.requestedHandleTypes = kind
    minimum = cu.CUmemAllocationGranularity_flags.CU_MEM_ALLOC_GRANULARITY_MINIMUM
    granule = ok(cu.cuMemGetAllocationGranularity(properties, minimum))
    expect("granule", granule, 2 * MIB)
    access = cu.CUmemAccessDesc()
    access.location = properties.location
    access.flags = cu.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
    with GivesBack("virtual memory") as memory:
        handle = ok(cu.cuMemCreate(2 * granule, properties, 0))
        base = ok(cu.cuMemAddressReserve(4 * granule, 0, 0, 0))
        # Twice the same memory: one copy of the contents, one charge.
        for part in range(2):
            at = int(base) + part * 2 * granule
            ok(cu.cuMemMap(at, 2 * granule, 0, handle, 0))
            ok(cu.cuMemSetAccess(at, 2 * granule, [access], 1))
        memory.taken(2 * granule)
        ok(cu.cuMemRelease(handle))
        memory.taken(2 * granule)
        ok(cu.cuMemsetD32(base, 42, 16))
        seen = numpy.zeros(16, dtype=numpy.uint32)
        ok(cu.cuMemcpyDtoH(seen.ctypes.data, int(base) + 2 * granule, 64))
        expect("seen by the other mapping", set(seen.tolist()), {42})
        ok(cu.cuMemUnmap(base, 4 * granule))
        ok(cu.cuMemAddressFree(base, 4 * granule))
    # In a share exported memory stays charged until its maker ends (docs/what-is-charged.md).
    with GivesBack("a handle", kept=granule if surroundings.in_share else 0) as memory:
        handle = ok(cu.cuMemCreate(granule, properties, 0))
        fd = ok(cu.cuMemExportToShareableHandle(handle, kind, 0))
        again = ok(cu.cuMemImportFromShareableHandle(int(fd), kind))
        os.close(int(fd))
        memory.taken(granule)
        ok(cu.cuMemRelease(again))
        ok(cu.cuMemRelease(handle))


def check_pools(stream):
    pool = ok(cu.cuDeviceGetDefaultMemPool(0))
    attribute = cu.CUmemPool_attribute
    with GivesBack("a pool"):
        memory = ok(cu.cuMemAllocAsync(5 * MIB, stream))
        used = ok(cu.cuMemPoolGetAttribute(pool, attribute.CU_MEMPOOL_ATTR_USED_MEM_CURRENT))
        expect("used", int(used), 5 * MIB)
        ok(cu.cuMemPoolSetAttribute(pool, attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
                                    cu.cuuint64_t(64 * MIB)))
        ok(cu.cuMemFreeAsync(memory, stream))
        ok(cu.cuStreamSynchronize(stream))
        kept = ok(cu.cuMemPoolGetAttribute(pool, attribute.CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT))
        expect_between("kept up to the threshold", int(kept), 5 * MIB, 64 * MIB)
        ok(cu.cuMemPoolTrimTo(pool, 0))
    ok(cu.cuMemPoolSetAttribute(pool, attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
                                cu.cuuint64_t(0)))


def arguments(*values):
    """Kernel parameters as cuda-bindings takes them: values and their types."""
    kinds = tuple(ctypes.c_uint32 if isinstance(v, numpy.uint32) else ctypes.c_uint64
                  for v in values)
    return tuple(int(v) for v in values), kinds


def check_capture(stream, module):
    fill = ok(cu.cuModuleGetFunction(module, b"aliquot_fill"))
    memory = ok(cu.cuMemAlloc(4096))
    ok(cu.cuMemsetD8(memory, 0, 4096))
    ok(cu.cuStreamBeginCapture(stream, cu.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL))
    words = arguments(memory, 1024, numpy.uint32(9))
    ok(cu.cuLaunchKernel(fill, 4, 1, 1, 256, 1, 1, 0, stream, words, 0))
    capturing = ok(cu.cuStreamIsCapturing(stream))
    expect("capturing", capturing.name, "CU_STREAM_CAPTURE_STATUS_ACTIVE")
    result, *_ = cu.cuStreamSynchronize(stream)
    expect("a wait within", result.name, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED")
    result, _ = cu.cuStreamEndCapture(stream)
    expect("its end", result.name, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED")

    ok(cu.cuStreamBeginCapture(stream, cu.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL))
    ok(cu.cuLaunchKernel(fill, 4, 1, 1, 256, 1, 1, 0, stream, words, 0))
    graph = ok(cu.cuStreamEndCapture(stream))
    # The bindings of 11.8 have it under its second name.
    instantiate = getattr(cu, "cuGraphInstantiateWithFlags", cu.cuGraphInstantiate)
    ready = ok(instantiate(graph, 0))
    ok(cu.cuGraphLaunch(ready, stream))
    ok(cu.cuStreamSynchronize(stream))
    seen = numpy.zeros(1024, dtype=numpy.uint32)
    ok(cu.cuMemcpyDtoH(seen.ctypes.data, memory, 4096))
    expect("the graph's kernel", set(seen.tolist()), {9})
    ok(cu.cuGraphExecDestroy(ready))
    ok(cu.cuGraphDestroy(graph))
    ok(cu.cuMemFree(memory))


def check_linker():
    link = ok(cu.cuLinkCreate(0, [], []))
    kind = cu.CUjitInputType.CU_JIT_INPUT_PTX
    ok(cu.cuLinkAddData(link, kind, PTX, len(PTX), b"ours", 0, [], []))
    image, size = ok(cu.cuLinkComplete(link))
    expect_between("bytes of the image", size, 1, MIB)
    module = ok(cu.cuModuleLoadData(image))
    ok(cu.cuModuleGetFunction(module, b"scale"))
    ok(cu.cuModuleUnload(module))
    ok(cu.cuLinkDestroy(link))


READER = """
import ctypes, sys
import numpy
from cuda.bindings import driver as cu
def ok(answer):
    assert answer[0] == 0, answer[0]
    return answer[1] if len(answer) > 1 else None
ok(cu.cuInit(0))
ok(cu.cuCtxSetCurrent(ok(cu.cuDevicePrimaryCtxRetain(0))))
handle = cu.CUipcMemHandle()
ctypes.memmove(handle.getPtr(), bytes.fromhex(sys.argv[1]), 64)
memory = ok(cu.cuIpcOpenMemHandle(handle, 1))
seen = numpy.zeros(16, dtype=numpy.uint32)
ok(cu.cuMemcpyDtoH(seen.ctypes.data, memory, 64))
print(sorted(set(seen.tolist())))
ok(cu.cuMemsetD32(memory, 6, 16))
ok(cu.cuIpcCloseMemHandle(memory))
"""


def check_ipc():
    before = free_bytes()
    memory = ok(cu.cuMemAlloc(2 * MIB))
    ok(cu.cuMemsetD32(memory, 5, 16))
    handle = ok(cu.cuIpcGetMemHandle(memory))
    reader = subprocess.run([sys.executable, "-c", READER, ctypes.string_at(handle.getPtr(), 64).hex()],
                            capture_output=True, text=True, timeout=60)
    expect("the other process", (reader.stdout, reader.stderr), ("[5]\n", ""))
    seen = numpy.zeros(16, dtype=numpy.uint32)
    ok(cu.cuMemcpyDtoH(seen.ctypes.data, memory, 64))
    expect("what it wrote", set(seen.tolist()), {6})
    ok(cu.cuMemFree(memory))
    # What the other process had is given back once its end has been seen: soon, not at once.
    for _ in range(2000):
        if free_bytes() == before:
            break
        time.sleep(0.005)


def check_managed():
    with GivesBack("managed memory"):
        kind = cu.CUmemAttach_flags.CU_MEM_ATTACH_GLOBAL
        memory = ok(cu.cuMemAllocManaged(MIB, kind.value))
        ok(cu.cuMemsetD8(memory, 3, MIB))
        ok(cu.cuCtxSynchronize())
        expect("seen by the host", set(ctypes.string_at(int(memory), MIB)), {3})
        ok(cu.cuMemFree(memory))


def check_limit():
    with GivesBack("all there is") as memory:
        result, _ = cu.cuMemAlloc(surroundings.driver_total)
        expect("more than is free", result.name, "CUDA_ERROR_OUT_OF_MEMORY")
        whole = free_bytes() // (2 * MIB) * 2 * MIB
        address = ok(cu.cuMemAlloc(whole))
        memory.taken(whole)
        ok(cu.cuMemFree(address))


def main():
    ok(cu.cuInit(0))
    check_look_ups()
    expect("devices", ok(cu.cuDeviceGetCount()), surroundings.gpus)
    expect("total", ok(cu.cuDeviceTotalMem(0)), surroundings.driver_total)
    ok(cu.cuCtxSetCurrent(ok(cu.cuDevicePrimaryCtxRetain(0))))
    stream = ok(cu.cuStreamCreate(0))
    module = ok(cu.cuModuleLoadData(PTX))
    check_virtual_memory()
    check_pools(stream)
    check_capture(stream, module)
    check_linker()
    check_ipc()
    check_managed()
    check_limit()
    print(f"cuda-bindings (simulated, {surroundings.where}): all as expected")


if __name__ == "__main__":
    main()
