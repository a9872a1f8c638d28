// Utilisation: rates, samples, per process. Integer percent of whole sample periods, seen late, as
// the device server reports them.

#include <map>
#include <vector>

#include "simdriver/nvml/answer.h"
#include "simdriver/nvml/bodies.h"

namespace aliquot::simdriver::nvml::bodies {
namespace {

unsigned period_us(const Gpu& gpu) {
  return static_cast<unsigned>(gpu.model().timing.utilisation_period_ns / 1000);
}

// Video engines exist, and nothing in a simulation uses them.
nvmlReturn_t idle_engine(nvmlDevice_t device, unsigned* percent, unsigned* period) {
  return with_gpu(device, [&](const Gpu& gpu) -> nvmlReturn_t {
    if (percent == nullptr || period == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    *percent = 0;
    *period = period_us(gpu);
    return NVML_SUCCESS;
  });
}

// The newest sample of each process after `since_us`, by pid.
nvmlReturn_t newest_of_each(const Gpu& gpu, unsigned long long since_us,
                            std::map<std::int32_t, Sample>& out) {
  std::vector<Sample> samples;
  const SamplesRequest request{gpu.index, SampleKind::kProcesses,
                               static_cast<std::int64_t>(since_us)};
  const nvmlReturn_t result = gpu.telemetry.samples(request, samples);
  for (const Sample& sample : samples) out[sample.pid] = sample;  // oldest first
  return result;
}

// What a sample of `type` says, given the GPU's utilisation at that time.
bool value_of(const Gpu& gpu, nvmlSamplingType_t type, unsigned percent, unsigned& out) {
  GpuTelemetry then{};
  then.gpu_percent = percent;
  const Dynamics dynamics = dynamics_of(gpu.model(), then);
  switch (type) {
    case NVML_TOTAL_POWER_SAMPLES:
      out = dynamics.power_mw;
      return true;
    case NVML_GPU_UTILIZATION_SAMPLES:
    case NVML_MEMORY_UTILIZATION_SAMPLES:
      out = percent;
      return true;
    case NVML_PROCESSOR_CLK_SAMPLES:
      out = dynamics.graphics_mhz;
      return true;
    case NVML_MEMORY_CLK_SAMPLES:
      out = dynamics.memory_mhz;
      return true;
    case NVML_ENC_UTILIZATION_SAMPLES:
    case NVML_DEC_UTILIZATION_SAMPLES:
      out = 0;
      return true;
    default:
      return false;
  }
}

nvmlReturn_t no_sessions(nvmlDevice_t device, unsigned* count) {
  return tell(device, count, [](const Gpu&) { return 0; });
}

}  // namespace

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t* rates) {
  return with_reading(device, [&](const Gpu&, const GpuReading& reading) -> nvmlReturn_t {
    if (rates == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    *rates = {.gpu = reading.figures.gpu_percent, .memory = reading.figures.memory_percent};
    return NVML_SUCCESS;
  });
}

nvmlReturn_t nvmlDeviceGetEncoderUtilization(nvmlDevice_t device, unsigned* percent,
                                             unsigned* period) {
  return idle_engine(device, percent, period);
}
nvmlReturn_t nvmlDeviceGetDecoderUtilization(nvmlDevice_t device, unsigned* percent,
                                             unsigned* period) {
  return idle_engine(device, percent, period);
}
nvmlReturn_t nvmlDeviceGetJpgUtilization(nvmlDevice_t device, unsigned* percent, unsigned* period) {
  return idle_engine(device, percent, period);
}
nvmlReturn_t nvmlDeviceGetOfaUtilization(nvmlDevice_t device, unsigned* percent, unsigned* period) {
  return idle_engine(device, percent, period);
}

nvmlReturn_t nvmlDeviceGetDynamicPstatesInfo(nvmlDevice_t device,
                                             nvmlGpuDynamicPstatesInfo_t* info) {
  return with_reading(device, [&](const Gpu&, const GpuReading& reading) -> nvmlReturn_t {
    if (info == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    *info = {};
    const auto set = [&](unsigned domain, unsigned percent) {
      info->utilization[domain] = {1, percent, 0, 0};
    };
    set(NVML_GPU_UTILIZATION_DOMAIN_GPU, reading.figures.gpu_percent);
    set(NVML_GPU_UTILIZATION_DOMAIN_FB, reading.figures.memory_percent);
    set(NVML_GPU_UTILIZATION_DOMAIN_VID, 0);
    set(NVML_GPU_UTILIZATION_DOMAIN_BUS, 0);
    return NVML_SUCCESS;
  });
}

nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device,
                                             nvmlProcessUtilizationSample_t* out, unsigned* count,
                                             unsigned long long last_seen_us) {
  return with_gpu(device, [&](const Gpu& gpu) -> nvmlReturn_t {
    if (count == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    std::map<std::int32_t, Sample> newest;
    const nvmlReturn_t result = newest_of_each(gpu, last_seen_us, newest);
    if (result != NVML_SUCCESS) return result;
    if (newest.empty()) {
      *count = 0;
      return NVML_ERROR_NOT_FOUND;
    }
    std::vector<nvmlProcessUtilizationSample_t> list;
    for (const auto& [pid, sample] : newest)
      list.push_back({.pid = static_cast<unsigned>(pid),
                      .timestamp_us = static_cast<unsigned long long>(sample.at_us),
                      .sm = sample.percent,
                      .memory = 0,
                      .encoder = 0,
                      .decoder = 0});
    if (out == nullptr) *count = 0;  // asks for the size
    return copy_list(list, count, out);
  });
}

nvmlReturn_t nvmlDeviceGetProcessesUtilizationInfo(nvmlDevice_t device,
                                                   nvmlProcessesUtilizationInfo_t* info) {
  if (const nvmlReturn_t checked = check_version(info, 1); checked != NVML_SUCCESS) return checked;
  return with_gpu(device, [&](const Gpu& gpu) -> nvmlReturn_t {
    std::map<std::int32_t, Sample> newest;
    const nvmlReturn_t result = newest_of_each(gpu, info->last_seen_us, newest);
    if (result != NVML_SUCCESS) return result;
    std::vector<nvmlProcessUtilizationInfo_v1_t> list;
    for (const auto& [pid, sample] : newest) {
      nvmlProcessUtilizationInfo_v1_t& entry = list.emplace_back();
      entry = {};
      entry.timestamp_us = static_cast<unsigned long long>(sample.at_us);
      entry.pid = static_cast<unsigned>(pid);
      entry.sm = sample.percent;
    }
    if (list.empty()) {
      info->count = 0;
      return NVML_ERROR_NOT_FOUND;
    }
    if (info->samples == nullptr) info->count = 0;
    return copy_list(list, &info->count, info->samples);
  });
}

nvmlReturn_t nvmlDeviceGetSamples(nvmlDevice_t device, nvmlSamplingType_t type,
                                  unsigned long long last_seen_us, nvmlValueType_t* value_type,
                                  unsigned* count, nvmlSample_t* out) {
  return with_gpu(device, [&](const Gpu& gpu) -> nvmlReturn_t {
    if (value_type == nullptr || count == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    unsigned value = 0;
    if (!value_of(gpu, type, 0, value)) return NVML_ERROR_NOT_SUPPORTED;
    const SampleKind kind =
        type == NVML_MEMORY_UTILIZATION_SAMPLES ? SampleKind::kMemory : SampleKind::kGpu;
    std::vector<Sample> samples;
    const nvmlReturn_t result =
        gpu.telemetry.samples({gpu.index, kind, static_cast<std::int64_t>(last_seen_us)}, samples);
    if (result != NVML_SUCCESS) return result;
    *value_type = NVML_VALUE_TYPE_UNSIGNED_INT;
    if (samples.empty()) return NVML_ERROR_NOT_FOUND;
    if (out == nullptr) {  // asks for the size
      *count = static_cast<unsigned>(samples.size());
      return NVML_SUCCESS;
    }
    *count = std::min<unsigned>(*count, static_cast<unsigned>(samples.size()));
    for (unsigned i = 0; i < *count; ++i) {
      value_of(gpu, type, samples[i].percent, value);
      out[i].timestamp_us = static_cast<unsigned long long>(samples[i].at_us);
      out[i].value.as_ullong = 0;
      out[i].value.as_uint = value;
    }
    return NVML_SUCCESS;
  });
}

nvmlReturn_t nvmlDeviceGetEncoderCapacity(nvmlDevice_t device, nvmlEncoderType_t type,
                                          unsigned* percent) {
  if (type < NVML_ENCODER_QUERY_H264 || type > NVML_ENCODER_QUERY_AV1)
    return NVML_ERROR_INVALID_ARGUMENT;
  return with_gpu(device, [&](const Gpu& gpu) -> nvmlReturn_t {
    if (gpu.model().encoders == 0) return NVML_ERROR_NOT_SUPPORTED;
    if (percent == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    *percent = 100;
    return NVML_SUCCESS;
  });
}
nvmlReturn_t nvmlDeviceGetEncoderStats(nvmlDevice_t device, unsigned* sessions,
                                       unsigned* average_fps, unsigned* average_latency) {
  if (average_fps == nullptr || average_latency == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *average_fps = 0;
  *average_latency = 0;
  return no_sessions(device, sessions);
}
nvmlReturn_t nvmlDeviceGetEncoderSessions(nvmlDevice_t device, unsigned* count,
                                          nvmlEncoderSessionInfo_t*) {
  return no_sessions(device, count);
}
nvmlReturn_t nvmlDeviceGetFBCStats(nvmlDevice_t device, nvmlFBCStats_t* stats) {
  return tell(device, stats, [](const Gpu&) { return nvmlFBCStats_t{}; });
}
nvmlReturn_t nvmlDeviceGetFBCSessions(nvmlDevice_t device, unsigned* count, nvmlFBCSessionInfo_t*) {
  return no_sessions(device, count);
}

}  // namespace aliquot::simdriver::nvml::bodies
