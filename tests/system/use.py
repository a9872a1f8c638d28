"""Who had GPU 0, by the driver's own samples: use.py LIBNVIDIA_ML SECONDS; prints {pid: percent}."""
import collections, ctypes, json, sys, time


class Sample(ctypes.Structure):
    _fields_ = [("pid", ctypes.c_uint), ("time_us", ctypes.c_ulonglong), ("sm", ctypes.c_uint),
                ("memory", ctypes.c_uint), ("encoder", ctypes.c_uint), ("decoder", ctypes.c_uint)]


nvml = ctypes.CDLL(sys.argv[1])
assert nvml.nvmlInit_v2() == 0
device = ctypes.c_void_p()
assert nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device)) == 0
percents = collections.defaultdict(dict)  # by pid: the end of a period -> percent
# Periods that end from now on.
first = ctypes.c_ulonglong(int(time.time() * 1e6))
end = time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
    samples, count = (Sample * 64)(), ctypes.c_uint(64)
    if nvml.nvmlDeviceGetProcessUtilization(device, samples, ctypes.byref(count), first) == 0:
        for sample in samples[:count.value]:
            percents[sample.pid][sample.time_us] = sample.sm
    time.sleep(0.05)
periods = sorted({at for seen in percents.values() for at in seen})
print(json.dumps({pid: sum(seen.values()) / len(periods) for pid, seen in percents.items()}))
