#!/usr/bin/env python3
"""cuda.core on a simulated a100x8 or in a share of it: devices, memory of each kind, streams and
events, graphs built and captured, the linker, sharing between processes, and its view of NVML."""
import multiprocessing
import os
import warnings

import numpy
from cuda.core import (Device, DeviceMemoryResource, DeviceMemoryResourceOptions, EventOptions,
                       LaunchConfig, LegacyPinnedMemoryResource, Linker, LinkerOptions,
                       ObjectCode, VirtualMemoryResource, VirtualMemoryResourceOptions, launch,
                       system)
from cuda.core.graph import GraphDefinition
from cuda.core._utils.cuda_utils import CUDAError

import surroundings
from check import expect, expect_between
from surroundings import PTX

MIB = 1 << 20
ONE = LaunchConfig(grid=1, block=1)


def check_devices():
    devices = Device.get_all_devices()
    expect("devices", len(devices), surroundings.gpus)
    device = devices[0]
    device.set_current()
    expect("name", device.name, "NVIDIA A100-SXM4-80GB")
    expect("compute capability", tuple(device.compute_capability), (8, 0))
    properties = device.properties
    expect("SMs", properties.multiprocessor_count, 108)
    expect("warp", properties.warp_size, 32)
    expect("pools", properties.memory_pools_supported, True)
    expect("virtual memory", properties.virtual_memory_management_supported, True)
    names = [name for name in dir(properties) if not name.startswith("_")]
    answered = [name for name in names if getattr(properties, name) is not None]
    expect("properties that answer", len(answered), len(names))
    expect_between("properties", len(names), 100, 200)
    return device


def check_pools(device, stream):
    pool = DeviceMemoryResource(device, DeviceMemoryResourceOptions(max_size=256 * MIB))
    first = pool.allocate(3 * MIB, stream=stream)
    second = pool.allocate(5 * MIB, stream=stream)
    expect("used", pool.attributes.used_mem_current, 8 * MIB)
    expect_between("reserved", pool.attributes.reserved_mem_current, 8 * MIB, 64 * MIB)
    expect("threshold", pool.attributes.release_threshold, 0)
    first.close(stream)
    stream.sync()
    expect("used after a free", pool.attributes.used_mem_current, 5 * MIB)
    expect("most used", pool.attributes.used_mem_high, 8 * MIB)
    second.close(stream)
    stream.sync()
    try:
        pool.allocate(512 * MIB, stream=stream)
    except CUDAError as error:
        expect("past the pool", "CUDA_ERROR_OUT_OF_MEMORY" in str(error), True)
    else:
        expect("past the pool", "granted", "CUDA_ERROR_OUT_OF_MEMORY")
    pool.close()


def as_words(buffer):
    return numpy.from_dlpack(buffer).view(numpy.uint32)


def check_contents(device, stream, kernels):
    """What a kernel wrote is read back through pinned memory."""
    words = 1 << 18
    pinned = LegacyPinnedMemoryResource().allocate(words * 4, stream=stream)
    a, b, sum_ = (device.allocate(words * 4, stream=stream) for _ in range(3))
    as_words(pinned)[:] = numpy.arange(words, dtype=numpy.uint32)
    pinned.copy_to(a, stream=stream)
    b.fill(numpy.uint32(7).tobytes(), stream=stream)
    wide = LaunchConfig(grid=words // 256, block=256)
    launch(stream, wide, kernels.get_kernel("aliquot_add"), sum_, a, b, numpy.uint64(words))
    sum_.copy_to(pinned, stream=stream)
    stream.sync()
    expect("a[i] + 7", bool((as_words(pinned) == numpy.arange(words) + 7).all()), True)
    for buffer in (pinned, a, b, sum_):
        buffer.close(stream)


def check_time(device, stream, kernels):
    """A kernel that spins for 20 ms takes 20 ms by its events."""
    spin = kernels.get_kernel("aliquot_spin")
    options = EventOptions(timing_enabled=True)
    # Work before the first event, so that the host's own delays lie before it.
    launch(stream, ONE, spin, numpy.uint64(100_000_000))
    begin = stream.record(options=options)
    launch(stream, ONE, spin, numpy.uint64(20_000_000))
    end = stream.record(options=options)
    end.sync()
    expect_between("milliseconds", end - begin, 20.0, 20.2)
    other = device.create_stream()
    launch(stream, ONE, spin, numpy.uint64(1_000_000))
    stopped = stream.record()
    other.wait(stopped)
    other.sync()
    expect("waited for", stopped.is_done, True)


def check_kernel(kernels):
    scale = kernels.get_kernel("scale")
    expect("parameters", [(p.offset, p.size) for p in scale.arguments_info], [(0, 8), (8, 4)])
    attributes = scale.attributes
    expect("shared", attributes.shared_size_bytes, 2048)
    expect("most threads", attributes.max_threads_per_block, 256)
    expect("PTX version", attributes.ptx_version, 50)
    blocks = scale.occupancy.max_active_blocks_per_multiprocessor(256, 0)
    expect("blocks an SM", blocks, 8)


def check_virtual_memory(device, stream):
    vmm = VirtualMemoryResource(device, VirtualMemoryResourceOptions())
    before = free_bytes()
    buffer = vmm.allocate(3 * MIB)
    expect("rounded", buffer.size, 4 * MIB)
    expect("taken", before - free_bytes(), 4 * MIB)
    buffer.fill(1, stream=stream)
    stream.sync()
    buffer.close()  # this version keeps its first reference to the memory; cuda_bindings_check.py
    # looks at what is given back


def check_captured_graph(device, stream, kernels):
    target = device.allocate(4096, stream=stream)
    stream.sync()
    builder = device.create_graph_builder().begin_building()
    launch(builder, LaunchConfig(grid=4, block=256), kernels.get_kernel("aliquot_fill"), target,
           numpy.uint64(1024), numpy.uint32(5))
    left, right = builder.split(2)
    launch(left, ONE, kernels.get_kernel("aliquot_spin"), numpy.uint64(1_000_000))
    launch(right, ONE, kernels.get_kernel("aliquot_spin"), numpy.uint64(1_000_000))
    type(builder).join(left, right).end_building()
    graph = builder.complete()
    graph.upload(stream)
    target.fill(0, stream=stream)
    graph.launch(stream)
    pinned = LegacyPinnedMemoryResource().allocate(4096, stream=stream)
    target.copy_to(pinned, stream=stream)
    stream.sync()
    expect("the graph's kernel", set(as_words(pinned).tolist()), {5})
    graph.close()


def check_built_graph(stream, kernels):
    """Memory of the graph itself, a fill, a kernel and a function of the host."""
    graph = GraphDefinition()
    memory = graph.allocate(MIB)
    said = []
    filled = memory.memset(memory.dptr, 9, MIB)
    spun = filled.launch(ONE, kernels.get_kernel("aliquot_spin"), numpy.uint64(100_000))
    called = spun.callback(lambda: said.append("called"))
    called.deallocate(memory.dptr)
    expect("nodes and edges", (len(graph.nodes()), len(graph.edges())), (5, 4))
    ready = graph.instantiate()
    for _ in range(3):
        ready.launch(stream)
    stream.sync()
    expect("calls", said, ["called"] * 3)


def check_linker():
    def part(name):
        text = f".version 7.0\n.target sm_50\n.address_size 64\n.visible .entry {name}() {{ ret; }}\n"
        return ObjectCode.from_ptx(text.encode())

    linker = Linker(part("one"), part("two"), options=LinkerOptions(arch="sm_80"))
    expect("backend", str(Linker.which_backend()), "driver")
    code = linker.link("cubin")
    for name in ("one", "two"):
        code.get_kernel(name)
    try:
        Linker(ObjectCode.from_ptx(b".version 7.0\n.target sm_50\nnonsense\n"),
               options=LinkerOptions(arch="sm_80")).link("cubin")
    except Exception as error:
        expect("error", "CUDA_ERROR_INVALID_PTX" in str(error), True)
    else:
        expect("nonsense", "linked", "refused")


def read_shared(buffer, words):
    """In a child: what the parent's buffer holds, and a word written into it."""
    device = Device()
    device.set_current()
    stream = device.create_stream()
    pinned = LegacyPinnedMemoryResource().allocate(buffer.size, stream=stream)
    buffer.copy_to(pinned, stream=stream)
    stream.sync()
    words.put(sorted(set(as_words(pinned).tolist())))
    buffer.fill(6, stream=stream)
    stream.sync()


def check_sharing(device, stream):
    pool = DeviceMemoryResource(device, DeviceMemoryResourceOptions(ipc_enabled=True,
                                                                    max_size=64 * MIB))
    buffer = pool.allocate(4096, stream=stream)
    buffer.fill(numpy.uint32(77).tobytes(), stream=stream)
    stream.sync()
    words = multiprocessing.Queue()
    child = multiprocessing.Process(target=read_shared, args=(buffer, words))
    child.start()
    expect("the child saw", words.get(timeout=60), [77])
    child.join(60)
    expect("the child's status", child.exitcode, 0)
    pinned = LegacyPinnedMemoryResource().allocate(4096, stream=stream)
    buffer.copy_to(pinned, stream=stream)
    stream.sync()
    expect("what the child wrote", set(as_words(pinned).tolist()), {0x06060606})


def free_bytes():
    from cuda.bindings import driver
    return driver.cuMemGetInfo()[1]


def check_system(device):
    expect("GPUs by NVML", system.get_num_devices(), surroundings.gpus)
    expect("driver", system.get_kernel_mode_driver_version(),
           tuple(int(part) for part in surroundings.driver.split(".")))
    gpu = device.to_system_device()
    expect("the same GPU", gpu.uuid, f"GPU-{device.uuid}")
    expect("its name", gpu.name, device.name)
    memory = gpu.memory_info
    expect("total", memory.total, surroundings.nvml_total)
    expect("sum", memory.used + memory.free + memory.reserved, memory.total)
    expect("processes", [p.pid for p in gpu.compute_running_processes], [os.getpid()])
    expect("architecture", gpu.arch.name, "AMPERE")
    expect("persistence", gpu.is_persistence_mode_enabled, True)
    expect("total by the driver", int(device_total()), surroundings.driver_total)


def device_total():
    from cuda.bindings import driver
    return driver.cuMemGetInfo()[2]


def main():
    warnings.simplefilter("ignore")  # that nvJitLink is not there, so the driver links
    multiprocessing.set_start_method("spawn")
    device = check_devices()
    stream = device.create_stream()
    kernels = ObjectCode.from_ptx(PTX)
    check_pools(device, stream)
    check_contents(device, stream, kernels)
    check_time(device, stream, kernels)
    check_kernel(kernels)
    check_virtual_memory(device, stream)
    check_captured_graph(device, stream, kernels)
    check_built_graph(stream, kernels)
    check_linker()
    check_sharing(device, stream)
    check_system(device)
    print(f"cuda.core (simulated, {surroundings.where}): all as expected")


if __name__ == "__main__":
    main()
