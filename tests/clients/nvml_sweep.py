#!/usr/bin/env python3
"""Calls every nvmlDeviceGet* of nvidia-ml-py on a simulated a100x8, or in a share of it, and checks
the answers: against the list of calls that do not answer there, and against each other. A program
runs on GPU 0, GPU 7 is cut by MIG (not from within a share), the others are idle.

usage: nvml_sweep.py [EXPECTATION.json [--print]] -- without the list (it is of the newest driver) only
the answers are checked
"""
import ctypes
import inspect
import json
import sys

import time

import pynvml as nvml

import surroundings
from check import Load

best = {}  # symbol -> the best result code that a call of it gave
missing = set()  # symbols that the library does not have


def record_calls():
    """Every library function that the bindings fetch reports its result here."""
    fetch = nvml._nvmlGetFunctionPointer

    def fetch_recorded(name):
        try:
            function = fetch(name)
        except nvml.NVMLError_FunctionNotFound:
            missing.add(name)
            raise

        def call(*arguments):
            code = function(*arguments)
            if best.get(name) != nvml.NVML_SUCCESS:
                best[name] = code
            return code

        call.restype = None
        return call

    nvml._nvmlGetFunctionPointer = fetch_recorded


def versioned(kind, version, **fields):
    struct = kind()
    struct.version = version
    for name, value in fields.items():
        setattr(struct, name, value)
    return ctypes.byref(struct)


def plain(kind):
    return ctypes.byref(kind())


# Arguments by the name of the parameter, and where that is not enough by function.
BY_PARAMETER = {
    "type": 0, "id": 0, "fan": 0, "sensor": 0, "threshold": 0, "errorType": 0, "counterType": 0,
    "locationType": 2, "mode": 0, "sourceFilter": 0, "apiType": 0, "sampling_type": 1,
    "timeStamp": 0, "perfPolicyType": 0, "counter": 0, "level": nvml.NVML_TOPOLOGY_SYSTEM,
    "link": 0, "capability": 0, "p2pIndex": 0, "encoderQueryType": 0, "profile": 0,
    "profileId": 19, "gpuInstanceId": 0, "index": 0, "sensorindex": 0, "clockType": 0,
    "pstate": 0, "infoRomObject": 0, "cpuSetSize": 4, "nodeSetSize": 4, "scope": 0,
    "memoryClockMHz": 1593, "vgpuTypeId": 1, "pid": 1,
}


def special_arguments(gpus, pid):
    gpu, cut = gpus[0], gpus[-1]
    mig = gpu if surroundings.in_share else nvml.nvmlDeviceGetMigDeviceHandleByIndex(cut, 0)
    count = ctypes.c_uint(0)
    return {
        "nvmlDeviceGetAccountingStats": (gpu, pid),
        "nvmlDeviceGetAttributes": (mig,),
        "nvmlDeviceGetAttributes_v2": (mig,),
        "nvmlDeviceGetGpuInstanceId": (mig,),
        "nvmlDeviceGetComputeInstanceId": (mig,),
        "nvmlDeviceGetDeviceHandleFromMigDeviceHandle": (mig,),
        "nvmlDeviceGetMigDeviceHandleByIndex": (cut, 0),
        "nvmlDeviceGetGpuInstanceById": (cut, 1),
        "nvmlDeviceGetGpuInstanceRemainingCapacity": (cut, 19),
        "nvmlDeviceGetNvLinkInfo": (gpu, versioned(nvml.c_nvmlNvLinkInfo_v1_t,
                                                   nvml.nvmlNvLinkInfo_v1)),
        "nvmlDeviceGetSramUniqueUncorrectedEccErrorCounts": (
            gpu, versioned(nvml.c_nvmlEccSramUniqueUncorrectedErrorCounts_v1_t,
                           nvml.nvmlEccSramUniqueUncorrectedErrorCounts_v1)),
        "nvmlDeviceGetCount": (),
        "nvmlDeviceGetHandleByIndex": (0,),
        "nvmlDeviceGetHandleBySerial": (nvml.nvmlDeviceGetSerial(gpu),),
        "nvmlDeviceGetHandleByUUID": (nvml.nvmlDeviceGetUUID(gpu),),
        "nvmlDeviceGetHandleByUUIDV": (nvml.nvmlDeviceGetUUID(gpu).encode(),
                                       nvml.NVML_UUID_TYPE_ASCII),
        "nvmlDeviceGetHandleByPciBusId": (nvml.nvmlDeviceGetPciInfo(gpu).busId,),
        "nvmlDeviceGetTopologyCommonAncestor": (gpu, gpus[surroundings.gpus // 2]),
        "nvmlDeviceGetP2PStatus": (gpu, gpus[surroundings.gpus // 2], 0),
        "nvmlDeviceGetConfComputeGpuAttestationReport": (gpu, [0] * 32),
        "nvmlDeviceGetPciInfoExt": (gpu, versioned(nvml.nvmlPciInfoExt_v1_t,
                                                   nvml.nvmlPciInfoExt_v1)),
        "nvmlDeviceGetFieldValues": (gpu, [nvml.NVML_FI_DEV_MEMORY_TEMP]),
        "nvmlDeviceGetRunningProcessDetailList": (gpu, nvml.nvmlProcessDetailList_v1, 0),
        "nvmlDeviceGetGpuInstancePossiblePlacements": (gpu, 19, None, ctypes.byref(count)),
        "nvmlDeviceGetGpuInstances": (cut, 9, None, ctypes.byref(count)),
        "nvmlDeviceGetClockOffsets": (gpu, versioned(nvml.c_nvmlClockOffset_t,
                                                     nvml.nvmlClockOffset_v1)),
        "nvmlDeviceGetGpuFabricInfo": (gpu, plain(nvml.c_nvmlGpuFabricInfo_t)),
        "nvmlDeviceGetGpuFabricInfoV": (gpu, versioned(nvml.c_nvmlGpuFabricInfo_v2_t,
                                                       nvml.nvmlGpuFabricInfo_v2)),
        "nvmlDeviceGetSramEccErrorStatus": (gpu, versioned(nvml.c_nvmlEccSramErrorStatus_v1_t,
                                                           nvml.nvmlEccSramErrorStatus_v1)),
        "nvmlDeviceGetCapabilities": (gpu, versioned(nvml.c_nvmlDeviceCapabilities_v1_t,
                                                     nvml.nvmlDeviceCapabilities_v1)),
    }


def arguments_of(name, function, gpus, special):
    """None where the call needs a struct that no simulated driver fills."""
    if name in special:
        return special[name]
    chosen = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name in ("handle", "device", "migDevice", "device1"):
            chosen.append(gpus[0])
        elif parameter.default is not inspect.Parameter.empty:
            break
        elif parameter.name in BY_PARAMETER:
            chosen.append(BY_PARAMETER[parameter.name])
        else:
            chosen.append(ctypes.create_string_buffer(65536))
    return chosen


def sweep(gpus, pid):
    special = special_arguments(gpus, pid)
    for name, function in sorted(vars(nvml).items()):
        if name.startswith("nvmlDeviceGet") and inspect.isfunction(function):
            try:
                function(*arguments_of(name, function, gpus, special))
            except nvml.NVMLError:
                pass  # its code is recorded


def check_agreement(gpu, index):
    """Ways to ask the same thing give the same answer."""
    first = nvml.nvmlDeviceGetMemoryInfo(gpu)
    second = nvml.nvmlDeviceGetMemoryInfo(gpu, version=nvml.nvmlMemory_v2)
    assert first.total == second.total == first.used + first.free
    assert second.total == second.used + second.free + second.reserved
    held = sum(p.usedGpuMemory for p in nvml.nvmlDeviceGetComputeRunningProcesses(gpu))
    assert held == second.used, (held, second.used)
    assert nvml.nvmlDeviceGetIndex(gpu) == index
    uuid = nvml.nvmlDeviceGetUUID(gpu)
    assert nvml.nvmlDeviceGetIndex(nvml.nvmlDeviceGetHandleByUUID(uuid)) == index
    pci = nvml.nvmlDeviceGetPciInfo(gpu)
    assert nvml.nvmlDeviceGetIndex(nvml.nvmlDeviceGetHandleByPciBusId(pci.busId)) == index
    assert pci.busId.endswith(pci.busIdLegacy[4:])
    low, high = nvml.nvmlDeviceGetPowerManagementLimitConstraints(gpu)
    limit = nvml.nvmlDeviceGetEnforcedPowerLimit(gpu)
    assert low <= nvml.nvmlDeviceGetPowerManagementDefaultLimit(gpu) <= high
    assert 0 < nvml.nvmlDeviceGetPowerUsage(gpu) <= limit <= high
    clock, most = (f(gpu, nvml.NVML_CLOCK_SM) for f in
                   (nvml.nvmlDeviceGetClockInfo, nvml.nvmlDeviceGetMaxClockInfo))
    assert clock <= most == max(nvml.nvmlDeviceGetSupportedGraphicsClocks(
        gpu, nvml.nvmlDeviceGetMaxClockInfo(gpu, nvml.NVML_CLOCK_MEM)))
    heat = nvml.nvmlDeviceGetTemperature(gpu, nvml.NVML_TEMPERATURE_GPU)
    slowdown = nvml.nvmlDeviceGetTemperatureThreshold(gpu, nvml.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN)
    if surroundings.cuda_number >= 12090:
        assert heat == nvml.nvmlDeviceGetTemperatureV(gpu, nvml.NVML_TEMPERATURE_GPU)
        assert slowdown - heat == nvml.nvmlDeviceGetMarginTemperature(gpu)
    major, minor = nvml.nvmlDeviceGetCudaComputeCapability(gpu)
    assert (major, minor) == (8, 0)
    assert nvml.nvmlDeviceGetArchitecture(gpu) == nvml.NVML_DEVICE_ARCH_AMPERE
    assert nvml.nvmlDeviceGetNumGpuCores(gpu) == 108 * 64
    energy = nvml.nvmlDeviceGetTotalEnergyConsumption(gpu)
    assert nvml.nvmlDeviceGetTotalEnergyConsumption(gpu) >= energy
    check_links(gpu)
    if not surroundings.in_share:
        check_neighbours(gpu)
        check_mig(gpu)


def check_use(gpu, pid):
    """The program on the GPU, in every list and sample."""
    assert [p.pid for p in nvml.nvmlDeviceGetComputeRunningProcesses(gpu)] == [pid]
    if not surroundings.in_share:
        assert nvml.nvmlDeviceGetAccountingPids(gpu) == [pid]
    assert 20 <= nvml.nvmlDeviceGetUtilizationRates(gpu).gpu <= 80
    assert [sample.pid for sample in nvml.nvmlDeviceGetProcessUtilization(gpu, 0)] == [pid]
    kind, samples = nvml.nvmlDeviceGetSamples(gpu, nvml.NVML_GPU_UTILIZATION_SAMPLES, 0)
    times = [sample.timeStamp for sample in samples]
    assert kind == nvml.NVML_VALUE_TYPE_UNSIGNED_INT and times == sorted(set(times))
    assert abs(times[-1] / 1e6 - time.time()) < 2, "the newest sample is not of now"
    periods = [later - earlier for earlier, later in zip(times, times[1:])]
    assert all(abs(period - 166667) <= 1 for period in periods), periods


def check_links(gpu):
    count = nvml.nvmlDeviceGetFieldValues(gpu, [nvml.NVML_FI_DEV_NVLINK_LINK_COUNT])[0]
    states = []
    try:
        while True:
            states.append(nvml.nvmlDeviceGetNvLinkState(gpu, len(states)))
    except nvml.NVMLError_InvalidArgument:
        pass
    assert len(states) == count.value.uiVal == 12 and all(states)
    switches = {nvml.nvmlDeviceGetNvLinkRemotePciInfo(gpu, link).busId for link in range(12)}
    assert len(switches) == 6


def check_neighbours(gpu):
    near = [nvml.nvmlDeviceGetTopologyNearestGpus(gpu, level) for level in (10, 20, 30, 40, 50)]
    assert [len(found) for found in near] == [0, 1, 0, 2, 4]


def cut_by_mig(gpu):
    """One instance of three slices, and its device as the bindings see it."""
    nvml.nvmlDeviceSetMigMode(gpu, nvml.NVML_DEVICE_MIG_ENABLE)
    instance = nvml.nvmlDeviceCreateGpuInstance(gpu, 9)
    nvml.nvmlGpuInstanceCreateComputeInstance(instance, nvml.NVML_COMPUTE_INSTANCE_PROFILE_3_SLICE)
    mig = nvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu, 0)
    assert nvml.nvmlDeviceGetName(mig) == "NVIDIA A100-SXM4-80GB MIG 3g.40gb"
    attributes = nvml.nvmlDeviceGetAttributes(mig)
    assert nvml.nvmlDeviceGetMemoryInfo(mig).total == attributes.memorySizeMB << 20
    assert attributes.multiprocessorCount == 42
    assert nvml.nvmlDeviceGetMaxMigDeviceCount(gpu) == 7
    assert nvml.nvmlDeviceGetGpuInstanceRemainingCapacity(gpu, 19) == 3


def check_mig(gpu):
    profiles = []
    for profile in range(nvml.NVML_GPU_INSTANCE_PROFILE_COUNT):
        try:
            profiles.append(nvml.nvmlDeviceGetGpuInstanceProfileInfo(gpu, profile))
        except nvml.NVMLError_NotSupported:
            pass
    assert sorted(p.id for p in profiles) == [0, 5, 9, 14, 15, 19, 20]
    for profile in profiles:
        count = ctypes.c_uint()
        nvml.nvmlDeviceGetGpuInstancePossiblePlacements(gpu, profile.id, None, ctypes.byref(count))
        assert count.value >= profile.instanceCount


def compare(expectation):
    """Faults, as text, between what was answered and what the list says."""
    listed = expectation["not_answered"]
    absent = set(expectation["younger_than_the_driver"])
    faults = []
    for symbol, code in sorted(best.items()):
        if code == nvml.NVML_SUCCESS and symbol in listed:
            faults.append(f"{symbol}: answers now; take it off the list")
        if code != nvml.NVML_SUCCESS and symbol not in listed:
            faults.append(f"{symbol}: {nvml.NVMLError(code)}, and not on the list")
        if symbol in listed and listed[symbol]["result"] != code:
            faults.append(f"{symbol}: result {code}, the list says {listed[symbol]['result']}")
    faults += [f"{symbol}: on the list, and never called" for symbol in listed if symbol not in best]
    faults += [f"{symbol}: on the list without a reason" for symbol, row in listed.items()
               if not row["reason"].strip(" ?")]
    faults += [f"{symbol}: found, though younger than the driver" for symbol in absent - missing]
    faults += [f"{symbol}: not found" for symbol in missing - absent]
    answered = sum(code == nvml.NVML_SUCCESS for code in best.values())
    if answered < expectation["answered_at_least"]:
        faults.append(f"only {answered} of {len(best)} calls answered")
    print(f"nvml sweep (simulated, {surroundings.where}): {answered} of {len(best)} calls answered, "
          f"{len(listed)} listed as not, {len(absent)} younger than the driver")
    return faults


def main():
    nvml.nvmlInit()
    gpus = [nvml.nvmlDeviceGetHandleByIndex(i) for i in range(nvml.nvmlDeviceGetCount())]
    if not surroundings.in_share:  # settings are the machine's owner's
        nvml.nvmlDeviceSetAccountingMode(gpus[0], nvml.NVML_FEATURE_ENABLED)
    with Load(gpu=0, mib=1000, percent=50) as load:
        # A program that starts where a GPU is cut by MIG is given an instance.
        if not surroundings.in_share:
            cut_by_mig(gpus[7])
        time.sleep(1.2)
        for index, gpu in enumerate(gpus):
            check_agreement(gpu, index)
        check_use(gpus[0], load.pid)
        if len(sys.argv) > 1:
            record_calls()
            sweep(gpus, load.pid)
    if "--print" in sys.argv:
        print(json.dumps({s: c for s, c in sorted(best.items()) if c}, indent=1), sorted(missing))
    faults = []
    if len(sys.argv) > 1:
        faults = compare(json.load(open(sys.argv[1])))
    else:
        print(f"nvidia-ml-py (simulated, {surroundings.where}): {len(gpus)} GPUs answer alike")
    nvml.nvmlShutdown()
    print("\n".join(faults))
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
