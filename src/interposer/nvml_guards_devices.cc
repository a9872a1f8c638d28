// Which GPUs there are: counting them, and finding one by index, UUID, serial or bus id.
#include "interposer/nvml_guards.h"
#include "interposer/nvml_view.h"
#include "interposer/real_driver.h"

namespace aliquot::interposer {
namespace {

nvmlReturn_t count(unsigned* out) {
  if (out == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *out = nvml_view::device_count();
  return NVML_SUCCESS;
}

nvmlReturn_t by_index(unsigned index, nvmlDevice_t* out) {
  if (out == nullptr || index >= nvml_view::device_count()) return NVML_ERROR_INVALID_ARGUMENT;
  nvmlDevice_t device = nvml_view::device(index);
  if (device == nullptr) return NVML_ERROR_GPU_IS_LOST;
  *out = device;
  return NVML_SUCCESS;
}

// The library finds it; the lease decides whether it is there.
template <class Key>
nvmlReturn_t look_up(nvmlReturn_t (*find)(Key, nvmlDevice_t*), Key key, nvmlDevice_t* out) {
  if (key == nullptr || out == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (!nvml_view::leased()) return NVML_ERROR_NOT_FOUND;
  nvmlDevice_t found = nullptr;
  const nvmlReturn_t result = find(key, &found);
  return nvml_view::only_if_leased(result, found, out);
}

}  // namespace

namespace nvml_guard {

nvmlReturn_t nvmlDeviceGetCount(unsigned int* device_count) { return count(device_count); }
nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int* device_count) { return count(device_count); }

nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned int index, nvmlDevice_t* device) {
  return by_index(index, device);
}
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t* device) {
  return by_index(index, device);
}
nvmlReturn_t nvmlDeviceGetHandleByUUID(const char* uuid, nvmlDevice_t* device) {
  return look_up(&real::nvmlDeviceGetHandleByUUID, uuid, device);
}
nvmlReturn_t nvmlDeviceGetHandleByUUIDV(const nvmlUUID_t* uuid, nvmlDevice_t* device) {
  return look_up(&real::nvmlDeviceGetHandleByUUIDV, uuid, device);
}
nvmlReturn_t nvmlDeviceGetHandleBySerial(const char* serial, nvmlDevice_t* device) {
  return look_up(&real::nvmlDeviceGetHandleBySerial, serial, device);
}
nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char* bus_id, nvmlDevice_t* device) {
  return look_up(&real::nvmlDeviceGetHandleByPciBusId, bus_id, device);
}
nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id, nvmlDevice_t* device) {
  return look_up(&real::nvmlDeviceGetHandleByPciBusId_v2, bus_id, device);
}

nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int* index) {
  if (index == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *index = static_cast<unsigned>(nvml_view::gpu_of(device));
  return NVML_SUCCESS;
}

// A MIG device is there if it is leased itself; the instances of a GPU belong to whoever cut them.
nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned int index,
                                                 nvmlDevice_t* mig_device) {
  if (mig_device == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  nvmlDevice_t found = nullptr;
  const nvmlReturn_t result = real::nvmlDeviceGetMigDeviceHandleByIndex(device, index, &found);
  return nvml_view::only_if_leased(result, found, mig_device);
}
nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t mig_device,
                                                          nvmlDevice_t* device) {
  if (device == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  nvmlDevice_t found = nullptr;
  const nvmlReturn_t result =
      real::nvmlDeviceGetDeviceHandleFromMigDeviceHandle(mig_device, &found);
  return nvml_view::only_if_leased(result, found, device);
}
nvmlReturn_t nvmlDeviceGetGpuInstances(nvmlDevice_t, unsigned int, nvmlGpuInstance_t*,
                                       unsigned int*) {
  return NVML_ERROR_NO_PERMISSION;
}
nvmlReturn_t nvmlDeviceGetGpuInstanceById(nvmlDevice_t, unsigned int, nvmlGpuInstance_t*) {
  return NVML_ERROR_NO_PERMISSION;
}

}  // namespace nvml_guard
}  // namespace aliquot::interposer
