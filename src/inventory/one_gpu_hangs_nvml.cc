// A libnvidia-ml of four GPUs about whose last nobody may ask: a driver may hang there for ever.
// For nvml_wrapper_test; here it ends the program instead.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "driver_abi/nvml_functions.h"

#define STANDIN extern "C" __attribute__((visibility("default")))

namespace {

constexpr unsigned kGpus = 4, kHangs = 3;
std::uintptr_t registered = 0;

nvmlReturn_t handle_of(unsigned index, nvmlDevice_t* out) {
  if (index >= kGpus) return NVML_ERROR_NOT_FOUND;
  if (index == kHangs) std::abort();
  *out = reinterpret_cast<nvmlDevice_t>(std::uintptr_t{index} + 1);
  return NVML_SUCCESS;
}

unsigned index_of(nvmlDevice_t device) {
  return static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(device) - 1);
}

}  // namespace

STANDIN nvmlReturn_t nvmlInit_v2() { return NVML_SUCCESS; }
STANDIN nvmlReturn_t nvmlShutdown() { return NVML_SUCCESS; }
STANDIN nvmlReturn_t nvmlDeviceGetCount_v2(unsigned* count) {
  *count = kGpus;
  return NVML_SUCCESS;
}
STANDIN nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t* out) {
  return handle_of(index, out);
}
STANDIN nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id, nvmlDevice_t* out) {
  return handle_of(static_cast<unsigned>(std::strtoul(bus_id, nullptr, 16)), out);
}
STANDIN nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned* index) {
  *index = index_of(device);
  return NVML_SUCCESS;
}
STANDIN nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t* pci) {
  std::snprintf(pci->bus_id, sizeof pci->bus_id, "%08X:01:00.0", index_of(device));
  return NVML_SUCCESS;
}
STANDIN nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t* set) {
  *set = reinterpret_cast<nvmlEventSet_t>(&registered);
  return NVML_SUCCESS;
}
STANDIN nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t /*set*/) { return NVML_SUCCESS; }
STANDIN nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long /*types*/,
                                              nvmlEventSet_t /*set*/) {
  registered = index_of(device);
  return NVML_SUCCESS;
}
// The XID says for which GPU it is.
STANDIN nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t /*set*/, nvmlEventData_t* data,
                                         unsigned /*timeout_ms*/) {
  data->data = 100 + registered;
  return NVML_SUCCESS;
}
