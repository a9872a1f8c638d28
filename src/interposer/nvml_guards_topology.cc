// Neighbours of a GPU: only those of the lease. Questions about a pair (P2P status, common
// ancestor, same board) need no body: both devices are leased, and the hardware is what it is.
#include "interposer/nvml_guards.h"
#include "interposer/nvml_view.h"
#include "interposer/real_driver.h"

namespace aliquot::interposer {
namespace {

constexpr unsigned kMostDevices = 64;

struct Devices {
  nvmlDevice_t list[kMostDevices];
  unsigned count = kMostDevices;

  void keep_leased() {
    unsigned kept = 0;
    for (unsigned i = 0; i < count && i < kMostDevices; ++i)
      if (nvml_view::is_leased(list[i])) list[kept++] = list[i];
    count = kept;
  }
};

// The library's manner: a count of 0 asks how many there are, another says how many fit.
nvmlReturn_t hand_out(const Devices& devices, unsigned* count, nvmlDevice_t* out) {
  if (*count == 0) {
    *count = devices.count;
    return NVML_SUCCESS;
  }
  if (out == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (*count > devices.count) *count = devices.count;
  for (unsigned i = 0; i < *count; ++i) out[i] = devices.list[i];
  return NVML_SUCCESS;
}

// The other end of an NVLink may be a switch, which everybody may see, or another tenant's GPU.
template <class Ask>
nvmlReturn_t remote_end(Ask ask, nvmlDevice_t device, unsigned link, nvmlPciInfo_t* pci) {
  if (pci == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  nvmlPciInfo_t end{};
  const nvmlReturn_t result = ask(device, link, &end);
  if (result != NVML_SUCCESS) return result;
  nvmlDevice_t gpu = nullptr;
  if (end.bus_id[0] == 0) __builtin_memcpy(end.bus_id, end.bus_id_legacy, sizeof end.bus_id_legacy);
  if (real::nvmlDeviceGetHandleByPciBusId_v2(end.bus_id, &gpu) == NVML_SUCCESS &&
      !nvml_view::is_leased(gpu))
    return NVML_ERROR_NOT_FOUND;
  *pci = end;
  return NVML_SUCCESS;
}

}  // namespace

namespace nvml_guard {

nvmlReturn_t nvmlDeviceGetTopologyNearestGpus(nvmlDevice_t device, nvmlGpuTopologyLevel_t level,
                                              unsigned int* count, nvmlDevice_t* device_array) {
  if (count == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  Devices found;
  const nvmlReturn_t result =
      real::nvmlDeviceGetTopologyNearestGpus(device, level, &found.count, found.list);
  if (result != NVML_SUCCESS) return result;
  found.keep_leased();
  return hand_out(found, count, device_array);
}

nvmlReturn_t nvmlSystemGetTopologyGpuSet(unsigned int cpu_number, unsigned int* count,
                                         nvmlDevice_t* device_array) {
  if (count == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  Devices found;
  found.count = 0;
  if (nvml_view::leased()) {
    found.count = kMostDevices;
    const nvmlReturn_t result =
        real::nvmlSystemGetTopologyGpuSet(cpu_number, &found.count, found.list);
    if (result != NVML_SUCCESS) return result;
    found.keep_leased();
  }
  return hand_out(found, count, device_array);
}

nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo(nvmlDevice_t device, unsigned int link,
                                              nvmlPciInfo_t* pci) {
  // The old call fills the first half only.
  nvmlPciInfo_t end{};
  const nvmlReturn_t result = remote_end(&real::nvmlDeviceGetNvLinkRemotePciInfo, device, link,
                                         pci != nullptr ? &end : nullptr);
  if (result != NVML_SUCCESS) return result;
  __builtin_memcpy(pci, &end, offsetof(nvmlPciInfo_t, bus_id));
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device, unsigned int link,
                                                 nvmlPciInfo_t* pci) {
  return remote_end(&real::nvmlDeviceGetNvLinkRemotePciInfo_v2, device, link, pci);
}

}  // namespace nvml_guard
}  // namespace aliquot::interposer
