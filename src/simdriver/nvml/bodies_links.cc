// PCIe, NVLink, and how near GPUs are to each other.

#include <unistd.h>

#include <array>
#include <vector>

#include "simdriver/nvml/answer.h"
#include "simdriver/nvml/bodies.h"
#include "simdriver/nvml/links.h"

namespace aliquot::simdriver::nvml::bodies {
namespace {

nvmlGpuTopologyLevel_t level_of(PciePath path) {
  switch (path) {
    case PciePath::kSelf:
      return NVML_TOPOLOGY_INTERNAL;
    case PciePath::kPix:
      return NVML_TOPOLOGY_SINGLE;
    case PciePath::kPxb:
      return NVML_TOPOLOGY_MULTIPLE;
    case PciePath::kPhb:
      return NVML_TOPOLOGY_HOSTBRIDGE;
    case PciePath::kNode:
      return NVML_TOPOLOGY_NODE;
    case PciePath::kSys:
      break;
  }
  return NVML_TOPOLOGY_SYSTEM;
}

// fn(gpu, other) for two GPUs of ours.
template <typename Fn>
nvmlReturn_t with_pair(nvmlDevice_t device, nvmlDevice_t other, Fn fn) {
  return with_library([&](const Library::Held& held) -> nvmlReturn_t {
    const std::optional<Gpu> first = held.gpu(device);
    const std::optional<Gpu> second = held.gpu(other);
    return first && second ? fn(*first, *second) : NVML_ERROR_INVALID_ARGUMENT;
  });
}

nvmlGpuP2PStatus_t pcie_status(const Gpu& gpu, const Gpu& other) {
  if (pcie_peers(gpu.machine, gpu.index, other.index)) return NVML_P2P_STATUS_OK;
  return gpu.model().brand == Brand::kGeforceRtx ? NVML_P2P_STATUS_GPU_NOT_SUPPORTED
                                                 : NVML_P2P_STATUS_CHIPSET_NOT_SUPPORTED;
}

// fn(gpu, reading) for a link that the GPU has.
template <typename Fn>
nvmlReturn_t with_link(nvmlDevice_t device, unsigned link, Fn fn) {
  return with_reading(device, [&](const Gpu& gpu, const GpuReading& reading) -> nvmlReturn_t {
    const unsigned links = link_count(gpu.machine, gpu.index);
    if (links == 0) return NVML_ERROR_NOT_SUPPORTED;
    return link < links ? fn(gpu, reading.figures) : NVML_ERROR_INVALID_ARGUMENT;
  });
}

bool is_up(const Gpu& gpu, const GpuTelemetry& now, unsigned link) {
  return link_end(gpu.machine, gpu.index, link).has_value() && (now.links_down >> link & 1) == 0;
}

// fn(end) for a link that leads somewhere.
template <typename Fn>
nvmlReturn_t with_link_end(nvmlDevice_t device, unsigned link, Fn fn) {
  return with_link(device, link, [&](const Gpu& gpu, const GpuTelemetry&) -> nvmlReturn_t {
    const std::optional<LinkEnd> end = link_end(gpu.machine, gpu.index, link);
    return end ? fn(gpu, *end) : NVML_ERROR_NOT_SUPPORTED;
  });
}

constexpr unsigned kSwitchDevice = 0x1af110de;

nvmlReturn_t remote_pci(nvmlDevice_t device, unsigned link, nvmlPciInfo_t* pci) {
  return with_link_end(device, link, [&](const Gpu& gpu, const LinkEnd& end) -> nvmlReturn_t {
    if (pci == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    *pci = {};
    pci->domain = end.address.domain;
    pci->bus = end.address.bus;
    pci->device = end.address.device;
    pci->device_id = end.is_switch ? kSwitchDevice : gpu.machine.model_of(end.gpu).pci_device_id;
    put_text(end.address.text(), pci->bus_id);
    put_text(end.address.text().substr(4), pci->bus_id_legacy);
    return NVML_SUCCESS;
  });
}

// NVML's PCIe speed per lane, by generation.
unsigned lane_mbps(unsigned generation) {
  return generation == 1 ? 2500 : generation == 2 ? 5000 : 1000u << generation;
}

}  // namespace

nvmlReturn_t nvmlDeviceGetCurrPcieLinkGeneration(nvmlDevice_t device, unsigned* generation) {
  return tell_dynamics(device, generation, [](const Dynamics& d) { return d.pcie_generation; });
}
nvmlReturn_t nvmlDeviceGetCurrPcieLinkWidth(nvmlDevice_t device, unsigned* width) {
  return tell(device, width, [](const Gpu& gpu) { return gpu.model().pcie.width; });
}
nvmlReturn_t nvmlDeviceGetMaxPcieLinkGeneration(nvmlDevice_t device, unsigned* generation) {
  return tell(device, generation, [](const Gpu& gpu) { return gpu.model().pcie.generation; });
}
nvmlReturn_t nvmlDeviceGetGpuMaxPcieLinkGeneration(nvmlDevice_t device, unsigned* generation) {
  return nvmlDeviceGetMaxPcieLinkGeneration(device, generation);
}
nvmlReturn_t nvmlDeviceGetMaxPcieLinkWidth(nvmlDevice_t device, unsigned* width) {
  return nvmlDeviceGetCurrPcieLinkWidth(device, width);
}
nvmlReturn_t nvmlDeviceGetPcieLinkMaxSpeed(nvmlDevice_t device, unsigned* speed) {
  // The numbers of NVML_PCIE_LINK_MAX_SPEED_ are those of the generations.
  return nvmlDeviceGetMaxPcieLinkGeneration(device, speed);
}
nvmlReturn_t nvmlDeviceGetPcieSpeed(nvmlDevice_t device, unsigned* mbps) {
  return tell_dynamics(device, mbps,
                       [](const Dynamics& d) { return lane_mbps(d.pcie_generation); });
}
nvmlReturn_t nvmlDeviceGetPcieReplayCounter(nvmlDevice_t device, unsigned* replays) {
  return tell(device, replays, [](const Gpu&) { return 0; });
}
// As the real one, watches the counters for 20 ms; KB/s.
nvmlReturn_t nvmlDeviceGetPcieThroughput(nvmlDevice_t device, nvmlPcieUtilCounter_t counter,
                                         unsigned* kb_per_s) {
  if (counter < 0 || counter >= NVML_PCIE_UTIL_COUNT) return NVML_ERROR_INVALID_ARGUMENT;
  GpuTelemetry before{};
  nvmlReturn_t result =
      tell_now(device, &before, [](const Gpu&, const GpuTelemetry& now) { return now; });
  if (result != NVML_SUCCESS) return result;
  usleep(20'000);
  return tell_now(device, kb_per_s, [&](const Gpu&, const GpuTelemetry& now) {
    // "Transmitted" is seen from the GPU.
    const std::uint64_t bytes = counter == NVML_PCIE_UTIL_TX_BYTES
                                    ? now.received_bytes - before.received_bytes
                                    : now.sent_bytes - before.sent_bytes;
    const std::int64_t ns = std::max<std::int64_t>(now.now_ns - before.now_ns, 1);
    return static_cast<double>(bytes) * 1e6 / static_cast<double>(ns);
  });
}

nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned link,
                                      nvmlEnableState_t* active) {
  return with_link(device, link, [&](const Gpu& gpu, const GpuTelemetry& now) -> nvmlReturn_t {
    if (active == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    *active = is_up(gpu, now, link) ? NVML_FEATURE_ENABLED : NVML_FEATURE_DISABLED;
    return NVML_SUCCESS;
  });
}
nvmlReturn_t nvmlDeviceGetNvLinkVersion(nvmlDevice_t device, unsigned link, unsigned* version) {
  return with_link(device, link, [&](const Gpu& gpu, const GpuTelemetry&) -> nvmlReturn_t {
    if (version == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    *version = nvml_nvlink_version(gpu.model().nvlink.version);
    return NVML_SUCCESS;
  });
}
nvmlReturn_t nvmlDeviceGetNvLinkCapability(nvmlDevice_t device, unsigned link,
                                           nvmlNvLinkCapability_t capability, unsigned* has) {
  if (capability < 0 || capability >= NVML_NVLINK_CAP_COUNT) return NVML_ERROR_INVALID_ARGUMENT;
  return with_link(device, link, [&](const Gpu& gpu, const GpuTelemetry&) -> nvmlReturn_t {
    if (has == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    const bool leads = link_end(gpu.machine, gpu.index, link).has_value();
    *has = capability != NVML_NVLINK_CAP_SLI_BRIDGE && leads ? 1 : 0;
    return NVML_SUCCESS;
  });
}
nvmlReturn_t nvmlDeviceGetNvLinkErrorCounter(nvmlDevice_t device, unsigned link,
                                             nvmlNvLinkErrorCounter_t counter,
                                             unsigned long long* errors) {
  if (counter < 0 || counter >= NVML_NVLINK_ERROR_COUNT) return NVML_ERROR_INVALID_ARGUMENT;
  return with_link(device, link, [&](const Gpu&, const GpuTelemetry& now) -> nvmlReturn_t {
    if (errors == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    *errors = counter == NVML_NVLINK_ERROR_DL_CRC_FLIT ? now.link_errors[link] : 0;
    return NVML_SUCCESS;
  });
}
nvmlReturn_t nvmlDeviceResetNvLinkErrorCounters(nvmlDevice_t device, unsigned link) {
  return with_link(device, link, [&](const Gpu& gpu, const GpuTelemetry&) {
    return gpu.telemetry.set({gpu.index, Setting::kClearLinkErrors, link});
  });
}
nvmlReturn_t nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t device, unsigned link,
                                                 nvmlIntNvLinkDeviceType_t* type) {
  return with_link_end(device, link, [&](const Gpu&, const LinkEnd& end) -> nvmlReturn_t {
    if (type == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    *type = end.is_switch ? NVML_NVLINK_DEVICE_TYPE_SWITCH : NVML_NVLINK_DEVICE_TYPE_GPU;
    return NVML_SUCCESS;
  });
}
nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device, unsigned link,
                                                 nvmlPciInfo_t* pci) {
  return remote_pci(device, link, pci);
}
nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo(nvmlDevice_t device, unsigned link,
                                              nvmlPciInfo_t* pci) {
  nvmlPciInfo_t whole;
  const nvmlReturn_t result = remote_pci(device, link, &whole);
  if (result != NVML_SUCCESS) return result;
  if (pci == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  std::memcpy(pci, &whole, offsetof(nvmlPciInfo_t, bus_id));  // the old, shorter struct
  return NVML_SUCCESS;
}
// The first version: version, and whether links are encrypted, which they are not.
nvmlReturn_t nvmlDeviceGetNvLinkInfo(nvmlDevice_t device, nvmlNvLinkInfo_t* info) {
  constexpr unsigned kFirstVersion = 0x1000008;
  std::array<unsigned, 2> fields{};
  if (info == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  std::memcpy(fields.data(), static_cast<const void*>(info), sizeof(fields));
  if (fields[0] != kFirstVersion) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  return with_link(device, 0, [&](const Gpu&, const GpuTelemetry&) {
    fields[1] = 0;
    std::memcpy(static_cast<void*>(info), fields.data(), sizeof(fields));
    return NVML_SUCCESS;
  });
}
nvmlReturn_t nvmlDeviceGetGpuFabricInfo(nvmlDevice_t device, nvmlGpuFabricInfo_t* info) {
  return with_gpu(device, [&](const Gpu&) -> nvmlReturn_t {
    if (info == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    *info = {};  // no fabric manager that would join nodes: not supported
    return NVML_SUCCESS;
  });
}
nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t device, nvmlGpuFabricInfoV_t* info) {
  if (info == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  const unsigned version = info->version;
  const bool second = version == driver_abi::nvml_struct_version<nvmlGpuFabricInfo_v2_t>(2);
  if (!second && !has_version(info, 3)) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  return with_gpu(device, [&](const Gpu&) {
    std::memset(info, 0, second ? sizeof(nvmlGpuFabricInfo_v2_t) : sizeof(nvmlGpuFabricInfoV_t));
    info->version = version;
    return NVML_SUCCESS;
  });
}

nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t device, nvmlDevice_t other,
                                                 nvmlGpuTopologyLevel_t* level) {
  return with_pair(device, other, [&](const Gpu& a, const Gpu& b) -> nvmlReturn_t {
    if (level == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    *level = level_of(a.machine.pcie[a.index][b.index]);
    return NVML_SUCCESS;
  });
}
nvmlReturn_t nvmlDeviceGetTopologyNearestGpus(nvmlDevice_t device, nvmlGpuTopologyLevel_t level,
                                              unsigned* count, nvmlDevice_t* devices) {
  return with_library([&](const Library::Held& held) -> nvmlReturn_t {
    const std::optional<Gpu> gpu = held.gpu(device);
    if (!gpu || count == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    std::vector<nvmlDevice_t> near;
    for (unsigned other = 0; other < held.gpu_count(); ++other)
      if (other != gpu->index && level_of(gpu->machine.pcie[gpu->index][other]) == level)
        near.push_back(held.handle(other));
    if (*count == 0) {  // asks for the size
      *count = static_cast<unsigned>(near.size());
      return NVML_SUCCESS;
    }
    return copy_list(near, count, devices);
  });
}
nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t device, nvmlDevice_t other,
                                    nvmlGpuP2PCapsIndex_t index, nvmlGpuP2PStatus_t* status) {
  return with_pair(device, other, [&](const Gpu& a, const Gpu& b) -> nvmlReturn_t {
    if (status == nullptr || a.index == b.index) return NVML_ERROR_INVALID_ARGUMENT;
    const bool nvlink = a.machine.nvlinks[a.index][b.index] > 0;
    switch (index) {
      case NVML_P2P_CAPS_INDEX_READ:
      case NVML_P2P_CAPS_INDEX_WRITE:
        *status = nvlink ? NVML_P2P_STATUS_OK : pcie_status(a, b);
        return NVML_SUCCESS;
      case NVML_P2P_CAPS_INDEX_NVLINK:
      case NVML_P2P_CAPS_INDEX_ATOMICS:
        *status = nvlink ? NVML_P2P_STATUS_OK : NVML_P2P_STATUS_NOT_SUPPORTED;
        return NVML_SUCCESS;
      case NVML_P2P_CAPS_INDEX_PCI:
        *status = pcie_status(a, b);
        return NVML_SUCCESS;
      default:
        return NVML_ERROR_INVALID_ARGUMENT;
    }
  });
}

}  // namespace aliquot::simdriver::nvml::bodies
