// Power, energy, temperature, fans.

#include "simdriver/nvml/answer.h"
#include "simdriver/nvml/bodies.h"

namespace aliquot::simdriver::nvml::bodies {
namespace {

// fn(model) for a fan that exists; cards cooled from outside have none.
template <typename Fn>
nvmlReturn_t with_fan(nvmlDevice_t device, unsigned fan, Fn fn) {
  return with_gpu(device, [&](const Gpu& gpu) -> nvmlReturn_t {
    if (gpu.model().fans == 0) return NVML_ERROR_NOT_SUPPORTED;
    return fan < gpu.model().fans ? fn(gpu) : NVML_ERROR_INVALID_ARGUMENT;
  });
}

constexpr unsigned kFanPercent = 30;  // fans stand still in no model: assumed
constexpr unsigned kFanRpm = 1200;

nvmlReturn_t fan_percent(nvmlDevice_t device, unsigned fan, unsigned* percent) {
  return with_fan(device, fan, [&](const Gpu&) -> nvmlReturn_t {
    if (percent == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    *percent = kFanPercent;
    return NVML_SUCCESS;
  });
}

}  // namespace

nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned* milliwatts) {
  return tell_dynamics(device, milliwatts, [](const Dynamics& d) { return d.power_mw; });
}
nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t device, unsigned long long* mj) {
  return tell_dynamics(device, mj, [](const Dynamics& d) { return d.energy_mj; });
}
nvmlReturn_t nvmlDeviceGetPowerManagementMode(nvmlDevice_t device, nvmlEnableState_t* mode) {
  return tell(device, mode, [](const Gpu&) { return NVML_FEATURE_ENABLED; });
}
nvmlReturn_t nvmlDeviceGetPowerManagementLimit(nvmlDevice_t device, unsigned* milliwatts) {
  return tell_now(device, milliwatts, [](const Gpu& gpu, const GpuTelemetry& now) {
    return power_limit_mw(gpu.model(), now);
  });
}
nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t device, unsigned* milliwatts) {
  return nvmlDeviceGetPowerManagementLimit(device, milliwatts);
}
nvmlReturn_t nvmlDeviceGetPowerManagementDefaultLimit(nvmlDevice_t device, unsigned* milliwatts) {
  return tell(device, milliwatts,
              [](const Gpu& gpu) { return gpu.model().power.limit_default_mw; });
}
nvmlReturn_t nvmlDeviceGetPowerManagementLimitConstraints(nvmlDevice_t device, unsigned* lowest,
                                                          unsigned* highest) {
  return with_gpu(device, [&](const Gpu& gpu) -> nvmlReturn_t {
    if (lowest == nullptr || highest == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    *lowest = gpu.model().power.limit_min_mw;
    *highest = gpu.model().power.limit_max_mw;
    return NVML_SUCCESS;
  });
}
nvmlReturn_t nvmlDeviceGetPowerSource(nvmlDevice_t device, nvmlPowerSource_t* source) {
  return tell(device, source, [](const Gpu&) { return NVML_POWER_SOURCE_AC; });
}

nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, nvmlTemperatureSensors_t sensor,
                                      unsigned* celsius) {
  if (sensor != NVML_TEMPERATURE_GPU) return NVML_ERROR_INVALID_ARGUMENT;
  return tell_dynamics(device, celsius, [](const Dynamics& d) { return d.temperature_c; });
}
nvmlReturn_t nvmlDeviceGetTemperatureV(nvmlDevice_t device, nvmlTemperature_t* temperature) {
  if (const nvmlReturn_t checked = check_version(temperature, 1); checked != NVML_SUCCESS)
    return checked;
  if (temperature->sensor != NVML_TEMPERATURE_GPU) return NVML_ERROR_INVALID_ARGUMENT;
  return tell_dynamics(device, &temperature->celsius,
                       [](const Dynamics& d) { return d.temperature_c; });
}
// How much warmer the GPU may become before it slows down.
nvmlReturn_t nvmlDeviceGetMarginTemperature(nvmlDevice_t device, nvmlMarginTemperature_t* info) {
  if (const nvmlReturn_t checked = check_version(info, 1); checked != NVML_SUCCESS) return checked;
  return tell_now(device, &info->celsius, [](const Gpu& gpu, const GpuTelemetry& now) {
    return static_cast<int>(gpu.model().temperatures.slowdown_c) -
           static_cast<int>(dynamics_of(gpu.model(), now).temperature_c);
  });
}
nvmlReturn_t nvmlDeviceGetTemperatureThreshold(nvmlDevice_t device,
                                               nvmlTemperatureThresholds_t threshold,
                                               unsigned* celsius) {
  return with_gpu(device, [&](const Gpu& gpu) -> nvmlReturn_t {
    if (celsius == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    const Temperatures& heat = gpu.model().temperatures;
    switch (threshold) {
      case NVML_TEMPERATURE_THRESHOLD_SHUTDOWN:
        *celsius = heat.shutdown_c;
        return NVML_SUCCESS;
      case NVML_TEMPERATURE_THRESHOLD_SLOWDOWN:
        *celsius = heat.slowdown_c;
        return NVML_SUCCESS;
      case NVML_TEMPERATURE_THRESHOLD_MEM_MAX:
        if (heat.memory_max_c == 0) return NVML_ERROR_NOT_SUPPORTED;
        *celsius = heat.memory_max_c;
        return NVML_SUCCESS;
      case NVML_TEMPERATURE_THRESHOLD_GPU_MAX:
        *celsius = heat.gpu_max_c;
        return NVML_SUCCESS;
      default:  // acoustic limits: none are set
        return threshold >= 0 && threshold < NVML_TEMPERATURE_THRESHOLD_COUNT
                   ? NVML_ERROR_NOT_SUPPORTED
                   : NVML_ERROR_INVALID_ARGUMENT;
    }
  });
}
nvmlReturn_t nvmlDeviceGetThermalSettings(nvmlDevice_t device, unsigned sensor,
                                          nvmlGpuThermalSettings_t* settings) {
  constexpr unsigned kAllSensors = 15;
  if (sensor != 0 && sensor != kAllSensors) return NVML_ERROR_INVALID_ARGUMENT;
  return with_reading(device, [&](const Gpu& gpu, const GpuReading& reading) -> nvmlReturn_t {
    if (settings == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    *settings = {};
    settings->count = 1;
    auto& first = settings->sensors[0];
    first.controller = 1;  // inside the GPU
    first.target = 1;      // of the GPU
    first.default_max_celsius = static_cast<int>(gpu.model().temperatures.shutdown_c);
    first.celsius = static_cast<int>(dynamics_of(gpu.model(), reading.figures).temperature_c);
    return NVML_SUCCESS;
  });
}

nvmlReturn_t nvmlDeviceGetNumFans(nvmlDevice_t device, unsigned* fans) {
  return tell(device, fans, [](const Gpu& gpu) { return gpu.model().fans; });
}
nvmlReturn_t nvmlDeviceGetFanSpeed(nvmlDevice_t device, unsigned* percent) {
  return fan_percent(device, 0, percent);
}
nvmlReturn_t nvmlDeviceGetFanSpeed_v2(nvmlDevice_t device, unsigned fan, unsigned* percent) {
  return fan_percent(device, fan, percent);
}
nvmlReturn_t nvmlDeviceGetTargetFanSpeed(nvmlDevice_t device, unsigned fan, unsigned* percent) {
  return fan_percent(device, fan, percent);
}
nvmlReturn_t nvmlDeviceGetFanSpeedRPM(nvmlDevice_t device, nvmlFanSpeedInfo_t* info) {
  if (const nvmlReturn_t checked = check_version(info, 1); checked != NVML_SUCCESS) return checked;
  return with_fan(device, info->fan, [&](const Gpu&) {
    info->rpm = kFanRpm;
    return NVML_SUCCESS;
  });
}
nvmlReturn_t nvmlDeviceGetMinMaxFanSpeed(nvmlDevice_t device, unsigned* lowest, unsigned* highest) {
  return with_fan(device, 0, [&](const Gpu&) -> nvmlReturn_t {
    if (lowest == nullptr || highest == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    *lowest = kFanPercent;
    *highest = 100;
    return NVML_SUCCESS;
  });
}
nvmlReturn_t nvmlDeviceGetFanControlPolicy_v2(nvmlDevice_t device, unsigned fan,
                                              nvmlFanControlPolicy_t* policy) {
  return with_fan(device, fan, [&](const Gpu&) -> nvmlReturn_t {
    if (policy == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    *policy = 0;  // by temperature
    return NVML_SUCCESS;
  });
}

}  // namespace aliquot::simdriver::nvml::bodies
