#!/usr/bin/env python3
"""PyCUDA on a simulated a100x8 or in a share of it: linked against libcuda.so.1, with the driver's
oldest calls."""
import numpy
import pycuda.driver as cuda

import surroundings
from check import expect, expect_between
from surroundings import PTX


def main():
    cuda.init()
    expect("version", cuda.get_driver_version(), surroundings.cuda_number)
    expect("GPUs", cuda.Device.count(), surroundings.gpus)
    device = cuda.Device(0)
    expect("name", device.name(), "NVIDIA A100-SXM4-80GB")
    expect("SMs", device.get_attribute(cuda.device_attribute.MULTIPROCESSOR_COUNT), 108)
    expect("total", device.total_memory(), surroundings.driver_total)
    context = device.make_context()
    try:
        check_memory_and_kernels()
    finally:
        context.pop()
        context.detach()
    print(f"PyCUDA (simulated, {surroundings.where}): all as expected")


def check_memory_and_kernels():
    before, _ = cuda.mem_get_info()
    words = numpy.arange(4096, dtype=numpy.uint32)
    a, b = cuda.to_device(words), cuda.mem_alloc(words.nbytes)
    cuda.memset_d32(int(b), 5, words.size)
    module = cuda.module_from_buffer(PTX)
    add = module.get_function("aliquot_add")
    stream = cuda.Stream()
    add(b, a, b, numpy.uint64(words.size), grid=(16, 1), block=(256, 1, 1), stream=stream)
    add.prepare("PPPQ")
    add.prepared_async_call((16, 1), (256, 1, 1), stream, b, a, b, words.size)
    stream.synchronize()
    # The driver's oldest launch: the shape and the parameters are the function's.
    add._set_block_shape(256, 1, 1)
    for place, value in enumerate((int(b), int(a), int(b), words.size)):
        add._param_setv(place * 8, numpy.uint64(value))
    add._param_set_size(32)
    add._launch_grid(16, 1)
    cuda.Context.synchronize()
    out = cuda.from_device_like(b, words)
    expect("3 a + 5", bool((out == 3 * words + 5).all()), True)
    expect("shared memory of a kernel", module.get_function("scale").shared_size_bytes, 2048)

    spin = module.get_function("aliquot_spin")
    begin, end = cuda.Event(), cuda.Event()
    for event in (begin, end):
        spin(numpy.uint64(100_000_000), grid=(1, 1), block=(1, 1, 1), stream=stream)
        event.record(stream)
    end.synchronize()
    expect_between("milliseconds", begin.time_till(end), 100.0, 101.0)
    a.free()
    b.free()
    expect_between("kept after all", before - cuda.mem_get_info()[0], 0, 4 << 20)


if __name__ == "__main__":
    main()
