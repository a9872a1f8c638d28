// What a share does not have: excluded GPUs, S-class units and their bridge cards.
#include "interposer/nvml_guards.h"
#include "interposer/real_driver.h"

namespace aliquot::interposer {
namespace {

nvmlReturn_t none(unsigned* count) {
  if (count == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *count = 0;
  return NVML_SUCCESS;
}

}  // namespace

namespace nvml_guard {

nvmlReturn_t nvmlGetExcludedDeviceCount(unsigned int* device_count) { return none(device_count); }
nvmlReturn_t nvmlGetExcludedDeviceInfoByIndex(unsigned int, nvmlExcludedDeviceInfo_t*) {
  return NVML_ERROR_INVALID_ARGUMENT;
}
nvmlReturn_t nvmlUnitGetCount(unsigned int* unit_count) { return none(unit_count); }
nvmlReturn_t nvmlUnitGetHandleByIndex(unsigned int, nvmlUnit_t*) {
  return NVML_ERROR_INVALID_ARGUMENT;
}
nvmlReturn_t nvmlUnitGetDevices(nvmlUnit_t, unsigned int*, nvmlDevice_t*) {
  return NVML_ERROR_INVALID_ARGUMENT;
}
nvmlReturn_t nvmlSystemGetHicVersion(unsigned int* hwbc_count, nvmlHwbcEntry_t*) {
  return none(hwbc_count);
}

}  // namespace nvml_guard
}  // namespace aliquot::interposer
