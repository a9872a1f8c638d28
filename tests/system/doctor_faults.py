"""Injects faults into simulated machines and compares what the doctor names.

usage: doctor_faults.py ALIQUOT PAIRS. The doctor sees the machine's NVML, its /sys and its files; the
faults are made by `aliquot sim fault`, by NVML's setters, or by writing those files."""
import itertools, json, os, pathlib, random, shutil, subprocess, sys, time

aliquot, pairs = sys.argv[1], int(sys.argv[2])


class Machine:
    def __init__(self):
        run("sim", "up", "--node", "a100x8", "--name", "ill")
        self.directory = pathlib.Path(os.environ["ALIQUOT_STATE_DIR"]) / "sim/ill"
        self.sys, self.root = self.directory / "sys", self.directory / "root"
        self.environment = dict(os.environ)

    def pci(self, gpu):
        return sorted(p for p in (self.sys / "bus/pci/devices").iterdir()
                      if (p / "class").read_text().startswith("0x0302"))[gpu].resolve()

    def nic(self):
        return self.sys / "class/infiniband" / sorted(os.listdir(self.sys / "class/infiniband"))[0]


def run(*words):
    subprocess.run([aliquot, *words], check=True, stdout=subprocess.DEVNULL)


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())


def fault(*words):
    return lambda m: run("sim", "fault", "ill", *words)


# In a process of its own: the loader takes each machine's library for the first one's.
SET = """
import ctypes, sys
library, handle = ctypes.CDLL(sys.argv[1]), ctypes.c_void_p()
sys.exit(library.nvmlInit_v2() or library.nvmlDeviceGetHandleByIndex_v2(int(sys.argv[3]), ctypes.byref(handle))
         or getattr(library, sys.argv[2])(handle, int(sys.argv[4])))
"""


def setter(name, gpu, value):
    return lambda m: subprocess.run([sys.executable, "-c", SET, m.directory / "lib/libnvidia-ml.so.1",
                                     name, str(gpu), str(value)], check=True)


def small_payload(m):
    config = bytearray((m.pci(2) / "config").read_bytes())
    config[0x48] = 0  # 128 bytes
    write(m.pci(2) / "config", bytes(config))


def other_driver(m):
    link = m.pci(4) / "driver"
    link.unlink()
    (m.sys / "bus/pci/drivers/vfio-pci").mkdir(parents=True)
    link.symlink_to(m.sys / "bus/pci/drivers/vfio-pci")


def unknown_gpu(m):
    at = m.sys / "devices/pci0000:7f/0000:7f:01.0"
    for name, text in {"class": "0x030200", "vendor": "0x10de", "device": "0x20b2", "numa_node": "0"}.items():
        write(at / name, text + "\n")
    (at / "driver").symlink_to(m.sys / "bus/pci/drivers/nvidia")
    (m.sys / "bus/pci/devices" / at.name).symlink_to(at)


def no_gpu_direct(m):
    shutil.rmtree(m.sys / "module/nvidia_peermem")
    write(m.directory / "proc/sys/kernel/osrelease", "4.18.0\n")


def software_rdma(m):
    at = m.sys / "class/infiniband/rxe0"
    for name, text in {"node_type": "1: CA", "parent": "eth0", "ports/1/link_layer": "Ethernet",
                       "ports/1/state": "4: ACTIVE", "ports/1/rate": "100 Gb/sec"}.items():
        write(at / name, text + "\n")


def roce_v1(m):
    write(m.nic() / "ports/1/link_layer", "Ethernet\n")
    write(m.nic() / "ports/1/gid_attrs/types/0", "IB/RoCE v1\n")
    write(m.nic() / "ports/1/gids/0", "fe80::1\n")


def half_a_dev(m):
    for name in ["nvidiactl", "nvidia-uvm", *(f"nvidia{i}" for i in range(8) if i != 6)]:
        write(m.directory / "dev" / name, "")


def variable(name, value):
    return lambda m: m.environment.update({name: value})


FAULTS = {
    "GPU_LOST": fault("--gpu", "3", "--lost"),
    "GPU_ECC_UNCORRECTED": fault("--gpu", "1", "--ecc-double", "2"),
    "GPU_ROW_REMAP_PENDING": fault("--gpu", "2", "--row-remap", "pending"),
    "GPU_ROW_REMAP_FAILED": fault("--gpu", "2", "--row-remap", "failed"),
    "NVLINK_DOWN": fault("--gpu", "0", "--link-down", "2"),
    "NVML_HANGS": fault("--gpu", "5", "--nvml-hang", "600000"),
    "GPU_MODE_EXCLUSIVE": setter("nvmlDeviceSetComputeMode", 7, 3),
    "GPU_MODE_PROHIBITED": setter("nvmlDeviceSetComputeMode", 6, 2),
    "GPU_PERSISTENCE_OFF": setter("nvmlDeviceSetPersistenceMode", 0, 0),
    "PCIE_LINK_NARROW": lambda m: write(m.pci(1) / "current_link_width", "8\n"),
    "PCIE_SLOT_SLOW": lambda m: write(m.pci(0).parent / "max_link_speed", "8.0 GT/s PCIe\n"),
    "PCIE_PAYLOAD_SMALL": small_payload,
    "NUMA_UNKNOWN": lambda m: write(m.pci(7) / "numa_node", "-1\n"),
    "GPU_OTHER_DRIVER": other_driver,
    "GPU_MISSING": unknown_gpu,
    "DRIVER_VERSION_MISMATCH": lambda m: write(
        m.directory / "proc/driver/nvidia/version", "NVRM version: NVIDIA  Module  535.104.05  x\n"),
    "DRIVER_ABSENT": lambda m: (m.directory / "proc/driver/nvidia/version").unlink(missing_ok=True),
    "DRIVER_NOUVEAU": lambda m: write(m.sys / "module/nouveau/version", "1\n"),
    "RDMA_PORT_DOWN": lambda m: write(m.nic() / "ports/1/state", "1: DOWN\n"),
    "RDMA_SOFTWARE": software_rdma,
    "RDMA_ROCE_V1": roce_v1,
    "GDR_MISSING": no_gpu_direct,
    "MPS_LEFTOVER": lambda m: write(m.directory / "mps/nvidia-cuda-mps-control.pid", "4194304\n"),
    "DEVICE_NODE_MISSING": half_a_dev,
    "KUBELET_SOCKET_MISSING": lambda m: write(m.root / "var/lib/kubelet/device-plugins/DEPRECATION", ""),
    "CDI_STALE": lambda m: write(m.root / "etc/cdi/nvidia.yaml",
                                 "kind: nvidia.com/gpu\nhostPath: /usr/lib/libcuda.so.535.1\n"),
    "IMAGE_LIBCUDA": lambda m: write(m.root / "usr/lib/x86_64-linux-gnu/libcuda.so.470.1", ""),
    "COMPAT_FORCED": lambda m: write(m.root / "etc/ld.so.conf.d/000_cuda.conf",
                                     "/usr/local/cuda-12.4/compat\n"),
    "COMPAT_NEEDED": variable("CUDA_VERSION", "14.0.1"),
    "NCCL_HARMFUL": variable("NCCL_P2P_DISABLE", "1"),
    "NCCL_DEFAULT": variable("NCCL_IB_TIMEOUT", "20"),
}
# The second hides what the first changed.
EXCLUDES = {frozenset(("DRIVER_VERSION_MISMATCH", "DRIVER_ABSENT")),
            frozenset(("COMPAT_NEEDED", "COMPAT_FORCED"))}  # then it is right


def check(*codes):
    machine = Machine()
    try:
        for code in codes:
            FAULTS[code](machine)
        began = time.monotonic()
        done = subprocess.run([aliquot, "doctor", "--sim", "ill", "--json"], capture_output=True,
                              text=True, env=machine.environment)
        took = time.monotonic() - began
        found = {finding["code"] for finding in json.loads(done.stdout)["findings"]}
        if found != set(codes):
            sys.exit(f"injected {sorted(codes)}, named {sorted(found)}: {done.stdout}{done.stderr}")
        if took > 30:
            sys.exit(f"{sorted(codes)}: named after {took:.0f} s")
    finally:
        run("sim", "down", "ill")


for one in FAULTS:
    check(one)
every = [p for p in itertools.combinations(FAULTS, 2) if frozenset(p) not in EXCLUDES]
random.Random(1).shuffle(every)
for pair in every[:pairs]:
    check(*pair)
print(f"{len(FAULTS)} faults, {min(pairs, len(every))} pairs: each named, nothing else")
