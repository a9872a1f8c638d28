// What a GPU is and where it sits: names, numbers, PCI address, nearest CPUs.

#include <climits>
#include <cstdio>
#include <vector>

#include "simdriver/cpu_list.h"
#include "simdriver/nvml/answer.h"
#include "simdriver/nvml/bodies.h"
#include "simdriver/nvml/mig_view.h"

namespace aliquot::simdriver::nvml::bodies {
namespace {

nvmlBrandType_t brand_of(const GpuModel& model) {
  switch (model.brand) {
    case Brand::kTesla:
      return NVML_BRAND_TESLA;
    case Brand::kGeforceRtx:
      return NVML_BRAND_GEFORCE_RTX;
    case Brand::kNvidia:
      break;
  }
  return NVML_BRAND_NVIDIA;
}

unsigned architecture_of(const GpuModel& model) {
  switch (model.architecture) {
    case Architecture::kVolta:
      return NVML_DEVICE_ARCH_VOLTA;
    case Architecture::kTuring:
      return NVML_DEVICE_ARCH_TURING;
    case Architecture::kAmpere:
      return NVML_DEVICE_ARCH_AMPERE;
    case Architecture::kAda:
      return NVML_DEVICE_ARCH_ADA;
    case Architecture::kHopper:
      return NVML_DEVICE_ARCH_HOPPER;
    case Architecture::kBlackwell:
      break;
  }
  return NVML_DEVICE_ARCH_BLACKWELL;
}

// The identifier of a board: its PCI address, as NVML makes it for boards with one GPU.
unsigned board_of(const Gpu& gpu) {
  const PciAddress& pci = gpu.spec().pci;
  return pci.domain << 16 | static_cast<unsigned>(pci.bus) << 8 | pci.device;
}

// The form of the bus id that the first two versions of the struct carry: a short domain.
void put_legacy_bus_id(const Gpu& gpu, nvmlPciInfo_t& out) {
  const PciAddress& pci = gpu.spec().pci;
  std::array<char, 24> text{};
  std::snprintf(text.data(), text.size(), "%04X:%02X:%02X.0", pci.domain & 0xffff, pci.bus,
                pci.device);
  put_text(text.data(), out.bus_id_legacy);
}

nvmlReturn_t pci_info(nvmlDevice_t device, nvmlPciInfo_t* out) {
  return with_gpu(device, [&](const Gpu& gpu) -> nvmlReturn_t {
    if (out == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    const PciAddress& pci = gpu.spec().pci;
    *out = {};
    put_legacy_bus_id(gpu, *out);
    put_text(pci.text(), out->bus_id);
    out->domain = pci.domain;
    out->bus = pci.bus;
    out->device = pci.device;
    out->device_id = gpu.model().pci_device_id;
    out->subsystem_id = gpu.model().pci_subsystem_id;
    return NVML_SUCCESS;
  });
}

// Un-suffixed and _v2 callers have a shorter struct, without the long bus id and, before _v2,
// without anything behind the subsystem id.
nvmlReturn_t short_pci_info(nvmlDevice_t device, nvmlPciInfo_t* out) {
  nvmlPciInfo_t whole;
  const nvmlReturn_t result = pci_info(device, &whole);
  if (result != NVML_SUCCESS) return result;
  if (out == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  std::memcpy(out, &whole, offsetof(nvmlPciInfo_t, bus_id));
  return NVML_SUCCESS;
}

nvmlReturn_t put_bits(const std::vector<unsigned>& bits, unsigned words, unsigned long* out) {
  constexpr unsigned kBits = sizeof(unsigned long) * CHAR_BIT;
  if (out == nullptr || words == 0) return NVML_ERROR_INVALID_ARGUMENT;
  std::fill(out, out + words, 0ul);
  for (const unsigned bit : bits) {
    if (bit / kBits >= words) return NVML_ERROR_INSUFFICIENT_SIZE;
    out[bit / kBits] |= 1ul << bit % kBits;
  }
  return NVML_SUCCESS;
}

nvmlReturn_t cpu_affinity(nvmlDevice_t device, unsigned words, unsigned long* out) {
  return with_gpu(device, [&](const Gpu& gpu) -> nvmlReturn_t {
    const int numa = gpu.spec().numa;
    if (numa < 0) return NVML_ERROR_NOT_SUPPORTED;
    const auto cpus = parse_cpu_list(gpu.machine.numa[static_cast<unsigned>(numa)].cpus);
    return cpus ? put_bits(*cpus, words, out) : NVML_ERROR_UNKNOWN;
  });
}

bool is_scope(nvmlAffinityScope_t scope) {
  return scope == NVML_AFFINITY_SCOPE_NODE || scope == NVML_AFFINITY_SCOPE_SOCKET;
}

}  // namespace

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char* name, unsigned length) {
  if (is_mig_device(device))
    return with_mig_device(
        device, [&](const MigDevice& mig) { return copy_text(mig.name(), name, length); });
  return tell_text(device, name, length, [](const Gpu& gpu) { return gpu.model().product; });
}
nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char* uuid, unsigned length) {
  if (is_mig_device(device))
    return with_mig_device(
        device, [&](const MigDevice& mig) { return copy_text(mig.uuid(), uuid, length); });
  return tell_text(device, uuid, length,
                   [](const Gpu& gpu) { return gpu_uuid_text(gpu.spec().uuid); });
}
nvmlReturn_t nvmlDeviceGetSerial(nvmlDevice_t device, char* serial, unsigned length) {
  return with_gpu(device, [&](const Gpu& gpu) -> nvmlReturn_t {
    if (gpu.model().brand == Brand::kGeforceRtx) return NVML_ERROR_NOT_SUPPORTED;
    return copy_text(gpu.spec().serial, serial, length);
  });
}
nvmlReturn_t nvmlDeviceGetBoardPartNumber(nvmlDevice_t device, char* part, unsigned length) {
  return with_gpu(device, [&](const Gpu& gpu) -> nvmlReturn_t {
    if (gpu.model().brand == Brand::kGeforceRtx) return NVML_ERROR_NOT_SUPPORTED;
    return copy_text(gpu.model().board_part, part, length);
  });
}
nvmlReturn_t nvmlDeviceGetVbiosVersion(nvmlDevice_t device, char* version, unsigned length) {
  return tell_text(device, version, length, [](const Gpu& gpu) { return gpu.model().vbios; });
}
nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned* index) {
  return tell(device, index, [](const Gpu& gpu) { return gpu.index; });
}
nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned* minor) {
  return tell(device, minor, [](const Gpu& gpu) { return gpu.spec().minor; });
}
nvmlReturn_t nvmlDeviceGetBrand(nvmlDevice_t device, nvmlBrandType_t* brand) {
  return tell(device, brand, [](const Gpu& gpu) { return brand_of(gpu.model()); });
}
nvmlReturn_t nvmlDeviceGetArchitecture(nvmlDevice_t device, nvmlDeviceArchitecture_t* out) {
  return tell(device, out, [](const Gpu& gpu) { return architecture_of(gpu.model()); });
}
nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int* major, int* minor) {
  return with_gpu(device, [&](const Gpu& gpu) -> nvmlReturn_t {
    if (major == nullptr || minor == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    *major = gpu.model().compute_capability.major;
    *minor = gpu.model().compute_capability.minor;
    return NVML_SUCCESS;
  });
}
nvmlReturn_t nvmlDeviceGetNumGpuCores(nvmlDevice_t device, unsigned* cores) {
  return tell(device, cores,
              [](const Gpu& gpu) { return gpu.model().sms * gpu.model().cores_per_sm; });
}
nvmlReturn_t nvmlDeviceGetMemoryBusWidth(nvmlDevice_t device, unsigned* bits) {
  return tell(device, bits, [](const Gpu& gpu) { return gpu.model().memory.bus_bits; });
}
nvmlReturn_t nvmlDeviceGetBoardId(nvmlDevice_t device, unsigned* board) {
  return tell(device, board, board_of);
}
nvmlReturn_t nvmlDeviceGetMultiGpuBoard(nvmlDevice_t device, unsigned* several) {
  return tell(device, several, [](const Gpu&) { return 0; });
}
nvmlReturn_t nvmlDeviceGetModuleId(nvmlDevice_t device, unsigned* module) {
  return tell(device, module, [](const Gpu& gpu) { return gpu.index + 1; });
}
nvmlReturn_t nvmlDeviceOnSameBoard(nvmlDevice_t one, nvmlDevice_t other, int* same) {
  return with_library([&](const Library::Held& held) -> nvmlReturn_t {
    if (!held.gpu(one) || !held.gpu(other) || same == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    *same = one == other ? 1 : 0;
    return NVML_SUCCESS;
  });
}

nvmlReturn_t nvmlDeviceGetPciInfo(nvmlDevice_t device, nvmlPciInfo_t* pci) {
  return short_pci_info(device, pci);
}
nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t device, nvmlPciInfo_t* pci) {
  return short_pci_info(device, pci);
}
nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t* pci) {
  return pci_info(device, pci);
}
nvmlReturn_t nvmlDeviceGetPciInfoExt(nvmlDevice_t device, nvmlPciInfoExt_t* pci) {
  if (const nvmlReturn_t checked = check_version(pci, 1); checked != NVML_SUCCESS) return checked;
  return with_gpu(device, [&](const Gpu& gpu) {
    const PciAddress& address = gpu.spec().pci;
    pci->domain = address.domain;
    pci->bus = address.bus;
    pci->device = address.device;
    pci->device_id = gpu.model().pci_device_id;
    pci->subsystem_id = gpu.model().pci_subsystem_id;
    pci->base_class = 3;                                               // PCI: display controller
    pci->sub_class = gpu.model().brand == Brand::kGeforceRtx ? 0 : 2;  // VGA or 3D controller
    put_text(address.text(), pci->bus_id);
    return NVML_SUCCESS;
  });
}
nvmlReturn_t nvmlDeviceGetBusType(nvmlDevice_t device, nvmlBusType_t* type) {
  return tell(device, type, [](const Gpu&) { return NVML_BUS_TYPE_PCIE; });
}
nvmlReturn_t nvmlDeviceGetIrqNum(nvmlDevice_t device, unsigned* irq) {
  return tell(device, irq, [](const Gpu& gpu) { return 100 + gpu.index; });
}
nvmlReturn_t nvmlDeviceGetPdi(nvmlDevice_t device, nvmlPdi_t* pdi) {
  if (const nvmlReturn_t checked = check_version(pdi, 1); checked != NVML_SUCCESS) return checked;
  return with_gpu(device, [&](const Gpu& gpu) {
    pdi->value = 0;
    for (unsigned i = 0; i < 8; ++i) pdi->value = pdi->value << 8 | gpu.spec().uuid[i];
    return NVML_SUCCESS;
  });
}

nvmlReturn_t nvmlDeviceGetCpuAffinity(nvmlDevice_t device, unsigned words, unsigned long* set) {
  return cpu_affinity(device, words, set);
}
nvmlReturn_t nvmlDeviceGetCpuAffinityWithinScope(nvmlDevice_t device, unsigned words,
                                                 unsigned long* set, nvmlAffinityScope_t scope) {
  return is_scope(scope) ? cpu_affinity(device, words, set) : NVML_ERROR_INVALID_ARGUMENT;
}
nvmlReturn_t nvmlDeviceGetMemoryAffinity(nvmlDevice_t device, unsigned words, unsigned long* set,
                                         nvmlAffinityScope_t scope) {
  if (!is_scope(scope)) return NVML_ERROR_INVALID_ARGUMENT;
  return with_gpu(device, [&](const Gpu& gpu) -> nvmlReturn_t {
    if (gpu.spec().numa < 0) return NVML_ERROR_NOT_SUPPORTED;
    return put_bits({static_cast<unsigned>(gpu.spec().numa)}, words, set);
  });
}
// A NUMA node of the GPU's own memory: only where the CPU addresses it coherently.
nvmlReturn_t nvmlDeviceGetNumaNodeId(nvmlDevice_t device, unsigned* node) {
  return with_gpu(device, [&](const Gpu& gpu) -> nvmlReturn_t {
    if (!gpu.model().integrated_cpu) return NVML_ERROR_NOT_SUPPORTED;
    if (node == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    *node = static_cast<unsigned>(gpu.machine.numa.size()) + gpu.index;
    return NVML_SUCCESS;
  });
}

}  // namespace aliquot::simdriver::nvml::bodies
