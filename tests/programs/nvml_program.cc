// A program that looks at its machine through NVML, and can hold device memory: what a test makes
// of libnvidia-ml.so.1 and libcuda.so.1, found as any program finds them. Prints one line a fact.
//
//   nvml_program MIB FOREIGN_UUID [FOREIGN_BUS_ID [wait]]
//
// With MIB above 0 it holds that much through the driver while it looks; with `wait`, until its
// input ends.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "driver_abi/cuda_functions.h"
#include "driver_abi/nvml_functions.h"

namespace {

namespace fn = aliquot::driver_abi::fn;

void* library(const char* name) {
  void* handle = dlopen(name, RTLD_NOW);
  if (handle == nullptr) {
    std::printf("no %s: %s\n", name, dlerror());
    std::exit(1);
  }
  return handle;
}

#define NVML(name) reinterpret_cast<fn::name>(dlsym(nvml, #name))
#define CUDA(name) reinterpret_cast<fn::name>(dlsym(cuda, #name))

void hold(unsigned long mib) {
  void* cuda = library("libcuda.so.1");
  CUcontext context = nullptr;
  CUdeviceptr address = 0;
  std::size_t free = 0, total = 0;
  const int init = CUDA(cuInit)(0);
  const int retained = CUDA(cuDevicePrimaryCtxRetain)(&context, 0);
  CUDA(cuCtxSetCurrent)(context);
  const int allocated = CUDA(cuMemAlloc_v2)(&address, mib << 20);
  CUDA(cuMemGetInfo_v2)(&free, &total);
  std::printf("cuda init=%d context=%d alloc=%d free=%zu total=%zu\n", init, retained, allocated,
              free, total);
}

void show_device(void* nvml, unsigned index) {
  nvmlDevice_t device = nullptr;
  NVML(nvmlDeviceGetHandleByIndex_v2)(index, &device);
  char uuid[96] = "", name[96] = "";
  nvmlPciInfo_t pci{};
  NVML(nvmlDeviceGetUUID)(device, uuid, sizeof uuid);
  NVML(nvmlDeviceGetName)(device, name, sizeof name);
  NVML(nvmlDeviceGetPciInfo_v3)(device, &pci);
  nvmlMemory_t memory{};
  nvmlMemory_v2_t newer{};
  newer.version = aliquot::driver_abi::nvml_struct_version<nvmlMemory_v2_t>(2);
  NVML(nvmlDeviceGetMemoryInfo)(device, &memory);
  NVML(nvmlDeviceGetMemoryInfo_v2)(device, &newer);
  unsigned power = 0;
  const int powered = NVML(nvmlDeviceGetPowerUsage)(device, &power);
  const int set = NVML(nvmlDeviceSetComputeMode)(device, NVML_COMPUTEMODE_PROHIBITED);
  std::printf("gpu %u uuid=%s name=%s bus=%s\n", index, uuid, name, pci.bus_id);
  std::printf("gpu %u total=%llu used=%llu free=%llu v2=%d power=%d set=%d\n", index, memory.total,
              memory.used, memory.free,
              newer.total == memory.total && newer.used == memory.used && newer.free == memory.free,
              powered, set);
  nvmlProcessInfo_t processes[32];
  unsigned count = 32;
  const int listed = NVML(nvmlDeviceGetComputeRunningProcesses_v3)(device, &count, processes);
  std::printf("gpu %u listed=%d processes=%u", index, listed, count);
  for (unsigned i = 0; listed == 0 && i < count; ++i)
    std::printf(" %s:%llu", processes[i].pid == static_cast<unsigned>(getpid()) ? "self" : "other",
                processes[i].used_bytes >> 20);
  std::printf("\n");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  if (const unsigned long mib = std::strtoul(argv[1], nullptr, 10); mib != 0) hold(mib);
  void* nvml = library("libnvidia-ml.so.1");
  unsigned count = 0;
  const int init = NVML(nvmlInit_v2)();
  const int counted = NVML(nvmlDeviceGetCount_v2)(&count);
  std::printf("nvml init=%d count=%d:%u\n", init, counted, count);
  for (unsigned i = 0; i < count; ++i) show_device(nvml, i);
  nvmlDevice_t device = nullptr;
  const int by_uuid = NVML(nvmlDeviceGetHandleByUUID)(argv[2], &device);
  const int by_bus = argc > 3 ? NVML(nvmlDeviceGetHandleByPciBusId_v2)(argv[3], &device) : -1;
  const int by_index = NVML(nvmlDeviceGetHandleByIndex_v2)(count, &device);
  std::printf("foreign uuid=%d bus=%d index=%d\n", by_uuid, by_bus, by_index);
  if (count == 2) {
    nvmlDevice_t both[2];
    NVML(nvmlDeviceGetHandleByIndex_v2)(0, &both[0]);
    NVML(nvmlDeviceGetHandleByIndex_v2)(1, &both[1]);
    nvmlGpuTopologyLevel_t level = -1;
    nvmlGpuP2PStatus_t status = -1;
    nvmlDevice_t near[8];
    unsigned near_count = 8;
    const int ancestor = NVML(nvmlDeviceGetTopologyCommonAncestor)(both[0], both[1], &level);
    const int p2p =
        NVML(nvmlDeviceGetP2PStatus)(both[0], both[1], NVML_P2P_CAPS_INDEX_READ, &status);
    const int nearest =
        NVML(nvmlDeviceGetTopologyNearestGpus)(both[0], NVML_TOPOLOGY_SYSTEM, &near_count, near);
    std::printf("pair ancestor=%d p2p=%d nearest=%d:%u\n", ancestor, p2p, nearest, near_count);
  }
  std::printf("shutdown=%d\n", NVML(nvmlShutdown)());
  std::fflush(stdout);
  char byte = 0;
  while (argc > 4 && read(STDIN_FILENO, &byte, 1) > 0) continue;
  return 0;
}
