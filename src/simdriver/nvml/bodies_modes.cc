// Modes and features: what is on, off, or not there at all.

#include "simdriver/nvml/answer.h"
#include "simdriver/nvml/bodies.h"

namespace aliquot::simdriver::nvml::bodies {
namespace {

nvmlReturn_t change(nvmlDevice_t device, Setting setting, std::uint64_t value) {
  return with_gpu(device,
                  [&](const Gpu& gpu) { return gpu.telemetry.set({gpu.index, setting, value}); });
}

nvmlReturn_t change_switch(nvmlDevice_t device, Setting setting, nvmlEnableState_t value) {
  if (value != NVML_FEATURE_DISABLED && value != NVML_FEATURE_ENABLED)
    return NVML_ERROR_INVALID_ARGUMENT;
  return change(device, setting, static_cast<std::uint64_t>(value));
}

bool has_inforom(const Gpu& gpu) { return gpu.model().brand != Brand::kGeforceRtx; }

// Only the first two fields are ours to fill: licensing supported, number of features.
nvmlReturn_t no_licences(nvmlDevice_t device, nvmlGridLicensableFeatures_t* out) {
  return with_gpu(device, [&](const Gpu&) -> nvmlReturn_t {
    if (out == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    std::memset(static_cast<void*>(out), 0, 2 * sizeof(int));
    return NVML_SUCCESS;
  });
}

}  // namespace

nvmlReturn_t nvmlDeviceGetPersistenceMode(nvmlDevice_t device, nvmlEnableState_t* mode) {
  return tell_now(device, mode,
                  [](const Gpu&, const GpuTelemetry& now) { return now.persistence; });
}
nvmlReturn_t nvmlDeviceSetPersistenceMode(nvmlDevice_t device, nvmlEnableState_t mode) {
  return change_switch(device, Setting::kPersistence, mode);
}
nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_t device, nvmlComputeMode_t* mode) {
  return tell_now(device, mode,
                  [](const Gpu&, const GpuTelemetry& now) { return now.compute_mode; });
}
nvmlReturn_t nvmlDeviceSetComputeMode(nvmlDevice_t device, nvmlComputeMode_t mode) {
  if (mode < 0 || mode >= NVML_COMPUTEMODE_COUNT) return NVML_ERROR_INVALID_ARGUMENT;
  return change(device, Setting::kComputeMode, static_cast<std::uint64_t>(mode));
}
nvmlReturn_t nvmlDeviceGetAccountingMode(nvmlDevice_t device, nvmlEnableState_t* mode) {
  return tell_now(device, mode, [](const Gpu&, const GpuTelemetry& now) { return now.accounting; });
}
nvmlReturn_t nvmlDeviceSetAccountingMode(nvmlDevice_t device, nvmlEnableState_t mode) {
  return change_switch(device, Setting::kAccounting, mode);
}
nvmlReturn_t nvmlDeviceSetPowerManagementLimit(nvmlDevice_t device, unsigned limit_mw) {
  if (limit_mw == 0) return NVML_ERROR_INVALID_ARGUMENT;
  return change(device, Setting::kPowerLimitMw, limit_mw);
}
nvmlReturn_t nvmlDeviceSetPowerManagementLimit_v2(nvmlDevice_t device, nvmlPowerValue_v2_t* value) {
  if (const nvmlReturn_t checked = check_version(value, 2); checked != NVML_SUCCESS) return checked;
  if (value->scope != 0 || value->milliwatts == 0) return NVML_ERROR_INVALID_ARGUMENT;
  return change(device, Setting::kPowerLimitMw, value->milliwatts);
}
nvmlReturn_t nvmlDeviceSetGpuLockedClocks(nvmlDevice_t device, unsigned min_mhz, unsigned max_mhz) {
  if (min_mhz > max_mhz || max_mhz == 0) return NVML_ERROR_INVALID_ARGUMENT;
  return change(device, Setting::kClockLimitMhz, max_mhz);
}
nvmlReturn_t nvmlDeviceResetGpuLockedClocks(nvmlDevice_t device) {
  return change(device, Setting::kClockLimitMhz, 0);
}
nvmlReturn_t nvmlDeviceClearEccErrorCounts(nvmlDevice_t device, nvmlEccCounterType_t type) {
  if (type != NVML_VOLATILE_ECC && type != NVML_AGGREGATE_ECC) return NVML_ERROR_INVALID_ARGUMENT;
  return change(device, Setting::kClearEcc, type == NVML_AGGREGATE_ECC ? 1 : 0);
}

nvmlReturn_t nvmlDeviceGetDisplayMode(nvmlDevice_t device, nvmlEnableState_t* mode) {
  return tell(device, mode, [](const Gpu&) { return NVML_FEATURE_DISABLED; });
}
nvmlReturn_t nvmlDeviceGetDisplayActive(nvmlDevice_t device, nvmlEnableState_t* active) {
  return tell(device, active, [](const Gpu&) { return NVML_FEATURE_DISABLED; });
}
nvmlReturn_t nvmlDeviceGetVirtualizationMode(nvmlDevice_t device,
                                             nvmlGpuVirtualizationMode_t* mode) {
  return tell(device, mode, [](const Gpu&) { return NVML_GPU_VIRTUALIZATION_MODE_NONE; });
}
nvmlReturn_t nvmlDeviceGetAPIRestriction(nvmlDevice_t device, nvmlRestrictedAPI_t api,
                                         nvmlEnableState_t* restricted) {
  if (api < 0 || api >= NVML_RESTRICTED_API_COUNT) return NVML_ERROR_INVALID_ARGUMENT;
  return with_gpu(device, [&](const Gpu&) -> nvmlReturn_t {
    if (api == NVML_RESTRICTED_API_SET_AUTO_BOOSTED_CLOCKS) return NVML_ERROR_NOT_SUPPORTED;
    if (restricted == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    *restricted = NVML_FEATURE_ENABLED;  // only root changes clocks
    return NVML_SUCCESS;
  });
}
nvmlReturn_t nvmlDeviceGetAddressingMode(nvmlDevice_t device, nvmlDeviceAddressingMode_t* mode) {
  if (const nvmlReturn_t checked = check_version(mode, 1); checked != NVML_SUCCESS) return checked;
  return with_gpu(device, [&](const Gpu& gpu) {
    mode->value = gpu.model().integrated_cpu ? 2 : 0;  // ATS where the CPU is coherent, else none
    return NVML_SUCCESS;
  });
}
nvmlReturn_t nvmlDeviceGetCapabilities(nvmlDevice_t device, nvmlDeviceCapabilities_t* caps) {
  if (const nvmlReturn_t checked = check_version(caps, 1); checked != NVML_SUCCESS) return checked;
  return with_gpu(device, [&](const Gpu&) {
    caps->mask = 0;  // neither extended GPU memory nor its health reports
    return NVML_SUCCESS;
  });
}
nvmlReturn_t nvmlDeviceGetC2cModeInfoV(nvmlDevice_t device, nvmlC2cModeInfo_v1_t* info) {
  return with_gpu(device, [&](const Gpu& gpu) -> nvmlReturn_t {
    if (info == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    info->enabled = gpu.model().integrated_cpu ? 1 : 0;
    return NVML_SUCCESS;
  });
}
nvmlReturn_t nvmlDeviceGetGspFirmwareVersion(nvmlDevice_t device, char* version) {
  return with_gpu(device, [&](const Gpu& gpu) -> nvmlReturn_t {
    if (gpu.model().architecture == Architecture::kVolta) return NVML_ERROR_NOT_SUPPORTED;
    return copy_text(gpu.machine.driver.driver, version, NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE);
  });
}
nvmlReturn_t nvmlDeviceGetGspFirmwareMode(nvmlDevice_t device, unsigned* enabled,
                                          unsigned* by_default) {
  return with_gpu(device, [&](const Gpu& gpu) -> nvmlReturn_t {
    if (gpu.model().architecture == Architecture::kVolta) return NVML_ERROR_NOT_SUPPORTED;
    if (enabled == nullptr || by_default == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    *enabled = 1;
    *by_default = 1;
    return NVML_SUCCESS;
  });
}

nvmlReturn_t nvmlDeviceGetInforomImageVersion(nvmlDevice_t device, char* version, unsigned length) {
  return with_gpu(device, [&](const Gpu& gpu) -> nvmlReturn_t {
    if (!has_inforom(gpu)) return NVML_ERROR_NOT_SUPPORTED;
    return copy_text("SIM0.0000.00.01", version, length);
  });
}
nvmlReturn_t nvmlDeviceGetInforomVersion(nvmlDevice_t device, nvmlInforomObject_t object,
                                         char* version, unsigned length) {
  if (object < 0 || object >= NVML_INFOROM_COUNT) return NVML_ERROR_INVALID_ARGUMENT;
  return with_gpu(device, [&](const Gpu& gpu) -> nvmlReturn_t {
    if (!has_inforom(gpu)) return NVML_ERROR_NOT_SUPPORTED;
    if (object == NVML_INFOROM_OEM) return copy_text("2.0", version, length);
    if (object == NVML_INFOROM_ECC) return copy_text("6.16", version, length);
    return NVML_ERROR_NOT_SUPPORTED;  // power and DEN objects: not on these boards
  });
}
nvmlReturn_t nvmlDeviceGetInforomConfigurationChecksum(nvmlDevice_t device, unsigned* checksum) {
  return with_gpu(device, [&](const Gpu& gpu) -> nvmlReturn_t {
    if (!has_inforom(gpu)) return NVML_ERROR_NOT_SUPPORTED;
    if (checksum == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    *checksum = gpu.model().pci_device_id;
    return NVML_SUCCESS;
  });
}
nvmlReturn_t nvmlDeviceValidateInforom(nvmlDevice_t device) {
  return with_gpu(device, [](const Gpu& gpu) {
    return has_inforom(gpu) ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
  });
}

nvmlReturn_t nvmlDeviceGetGridLicensableFeatures(nvmlDevice_t device,
                                                 nvmlGridLicensableFeatures_t* out) {
  return no_licences(device, out);
}
nvmlReturn_t nvmlDeviceGetGridLicensableFeatures_v2(nvmlDevice_t device,
                                                    nvmlGridLicensableFeatures_t* out) {
  return no_licences(device, out);
}
nvmlReturn_t nvmlDeviceGetGridLicensableFeatures_v3(nvmlDevice_t device,
                                                    nvmlGridLicensableFeatures_t* out) {
  return no_licences(device, out);
}
nvmlReturn_t nvmlDeviceGetGridLicensableFeatures_v4(nvmlDevice_t device,
                                                    nvmlGridLicensableFeatures_t* out) {
  return no_licences(device, out);
}

// Without confidential computing all memory is unprotected; Ampere and later can tell.
nvmlReturn_t nvmlDeviceGetConfComputeMemSizeInfo(nvmlDevice_t device,
                                                 nvmlConfComputeMemSizeInfo_t* info) {
  return with_gpu(device, [&](const Gpu& gpu) -> nvmlReturn_t {
    if (gpu.model().compute_capability.major < 8) return NVML_ERROR_NOT_SUPPORTED;
    if (info == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    *info = {.protected_kib = 0, .unprotected_kib = gpu.model().memory.nvml_total_bytes >> 10};
    return NVML_SUCCESS;
  });
}
nvmlReturn_t nvmlDeviceGetConfComputeProtectedMemoryUsage(nvmlDevice_t device,
                                                          nvmlMemory_t* memory) {
  return with_gpu(device, [&](const Gpu& gpu) -> nvmlReturn_t {
    if (gpu.model().compute_capability.major < 8) return NVML_ERROR_NOT_SUPPORTED;
    if (memory == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    *memory = {};
    return NVML_SUCCESS;
  });
}

// Streaming metrics need hardware counters that the model does not have.
nvmlReturn_t nvmlGpmQueryDeviceSupport(nvmlDevice_t device, nvmlGpmSupport_t* support) {
  if (const nvmlReturn_t checked = check_version(support, 1); checked != NVML_SUCCESS)
    return checked;
  return with_gpu(device, [&](const Gpu&) {
    support->supported = 0;
    return NVML_SUCCESS;
  });
}

}  // namespace aliquot::simdriver::nvml::bodies
