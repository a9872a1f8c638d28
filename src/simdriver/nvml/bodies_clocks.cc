// Clocks, performance states and why clocks are held back.

#include <array>
#include <string>
#include <vector>

#include "simdriver/nvml/answer.h"
#include "simdriver/nvml/bodies.h"

namespace aliquot::simdriver::nvml::bodies {
namespace {

bool is_clock(nvmlClockType_t type) { return type >= 0 && type < NVML_CLOCK_COUNT; }

unsigned current_mhz(const Dynamics& dynamics, nvmlClockType_t type) {
  if (type == NVML_CLOCK_MEM) return dynamics.memory_mhz;
  return type == NVML_CLOCK_VIDEO ? dynamics.video_mhz : dynamics.graphics_mhz;
}

unsigned max_mhz(const Clocks& clocks, nvmlClockType_t type) {
  if (type == NVML_CLOCK_MEM) return clocks.memory_max_mhz;
  return type == NVML_CLOCK_VIDEO ? clocks.video_max_mhz : clocks.graphics_max_mhz;
}

unsigned min_mhz(const Clocks& clocks, nvmlClockType_t type) {
  if (type == NVML_CLOCK_MEM) return clocks.memory_idle_mhz;
  return type == NVML_CLOCK_VIDEO ? clocks.video_max_mhz * 40 / 100 : clocks.graphics_min_mhz;
}

nvmlReturn_t application_clock(nvmlDevice_t device, nvmlClockType_t type, unsigned* mhz) {
  if (!is_clock(type)) return NVML_ERROR_INVALID_ARGUMENT;
  return with_gpu(device, [&](const Gpu& gpu) -> nvmlReturn_t {
    if (type == NVML_CLOCK_VIDEO || gpu.model().brand == Brand::kGeforceRtx)
      return NVML_ERROR_NOT_SUPPORTED;
    if (mhz == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    const Clocks& clocks = gpu.model().clocks;
    *mhz = type == NVML_CLOCK_MEM ? clocks.memory_max_mhz : clocks.graphics_default_mhz;
    return NVML_SUCCESS;
  });
}

// The states that the GPU uses: P0, and P8 where its memory clock goes down.
std::vector<nvmlPstates_t> states_of(const Clocks& clocks) {
  std::vector<nvmlPstates_t> states{NVML_PSTATE_0};
  if (clocks.memory_idle_mhz != clocks.memory_max_mhz) states.push_back(NVML_PSTATE_8);
  return states;
}

std::vector<unsigned> memory_clocks(const Clocks& clocks) {
  std::vector<unsigned> all{clocks.memory_max_mhz};
  if (clocks.memory_idle_mhz != clocks.memory_max_mhz) all.push_back(clocks.memory_idle_mhz);
  return all;
}

std::vector<unsigned> graphics_clocks(const Clocks& clocks) {
  std::vector<unsigned> all;
  for (unsigned mhz = clocks.graphics_max_mhz; mhz >= clocks.graphics_min_mhz;
       mhz -= clocks.graphics_step_mhz) {
    all.push_back(mhz);
    if (mhz < clocks.graphics_step_mhz) break;
  }
  return all;
}

unsigned long long reasons(const Gpu& gpu, const GpuTelemetry& now) {
  if (dynamics_of(gpu.model(), now).idle) return nvmlClocksEventReasonGpuIdle;
  return now.clock_limit_mhz != 0 ? nvmlClocksEventReasonApplicationsClocksSetting
                                  : nvmlClocksEventReasonNone;
}

nvmlReturn_t supported_reasons(nvmlDevice_t device, unsigned long long* out) {
  return tell(device, out, [](const Gpu&) {
    return nvmlClocksEventReasonGpuIdle | nvmlClocksEventReasonApplicationsClocksSetting;
  });
}

std::string mode_text(unsigned state, const Clocks& clocks, unsigned memory_mhz) {
  const std::string low = std::to_string(clocks.graphics_min_mhz);
  const std::string high = std::to_string(clocks.graphics_max_mhz);
  const std::string memory = std::to_string(memory_mhz);
  return "perf=" + std::to_string(state) + ", nvclock=" + low + ", nvclockmin=" + low +
         ", nvclockmax=" + high + ", nvclockeditable=0, memclock=" + memory +
         ", memclockmin=" + memory + ", memclockmax=" + memory + ", memclockeditable=0";
}

nvmlReturn_t no_offset(nvmlDevice_t device, int* offset) {
  return tell(device, offset, [](const Gpu&) { return 0; });
}

nvmlReturn_t no_offset_range(nvmlDevice_t device, int* lowest, int* highest) {
  if (lowest == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  const nvmlReturn_t result = no_offset(device, highest);
  if (result == NVML_SUCCESS) *lowest = 0;
  return result;
}

}  // namespace

nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned* mhz) {
  if (!is_clock(type)) return NVML_ERROR_INVALID_ARGUMENT;
  return tell_dynamics(device, mhz, [&](const Dynamics& d) { return current_mhz(d, type); });
}
nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned* mhz) {
  if (!is_clock(type)) return NVML_ERROR_INVALID_ARGUMENT;
  return tell(device, mhz, [&](const Gpu& gpu) { return max_mhz(gpu.model().clocks, type); });
}
nvmlReturn_t nvmlDeviceGetApplicationsClock(nvmlDevice_t device, nvmlClockType_t type,
                                            unsigned* mhz) {
  return application_clock(device, type, mhz);
}
nvmlReturn_t nvmlDeviceGetDefaultApplicationsClock(nvmlDevice_t device, nvmlClockType_t type,
                                                   unsigned* mhz) {
  return application_clock(device, type, mhz);
}
nvmlReturn_t nvmlDeviceGetMaxCustomerBoostClock(nvmlDevice_t device, nvmlClockType_t type,
                                                unsigned* mhz) {
  return nvmlDeviceGetMaxClockInfo(device, type, mhz);
}
nvmlReturn_t nvmlDeviceGetClock(nvmlDevice_t device, nvmlClockType_t type, nvmlClockId_t id,
                                unsigned* mhz) {
  switch (id) {
    case NVML_CLOCK_ID_CURRENT:
      return nvmlDeviceGetClockInfo(device, type, mhz);
    case NVML_CLOCK_ID_APP_CLOCK_TARGET:
    case NVML_CLOCK_ID_APP_CLOCK_DEFAULT:
      return application_clock(device, type, mhz);
    case NVML_CLOCK_ID_CUSTOMER_BOOST_MAX:
      return nvmlDeviceGetMaxClockInfo(device, type, mhz);
    default:
      return NVML_ERROR_INVALID_ARGUMENT;
  }
}
nvmlReturn_t nvmlDeviceGetSupportedMemoryClocks(nvmlDevice_t device, unsigned* count,
                                                unsigned* mhz) {
  return with_gpu(device, [&](const Gpu& gpu) {
    return copy_list(memory_clocks(gpu.model().clocks), count, mhz);
  });
}
nvmlReturn_t nvmlDeviceGetSupportedGraphicsClocks(nvmlDevice_t device, unsigned memory_mhz,
                                                  unsigned* count, unsigned* mhz) {
  return with_gpu(device, [&](const Gpu& gpu) -> nvmlReturn_t {
    const Clocks& clocks = gpu.model().clocks;
    const std::vector<unsigned> known = memory_clocks(clocks);
    if (std::ranges::find(known, memory_mhz) == known.end()) return NVML_ERROR_NOT_FOUND;
    return copy_list(graphics_clocks(clocks), count, mhz);
  });
}

nvmlReturn_t nvmlDeviceGetPerformanceState(nvmlDevice_t device, nvmlPstates_t* state) {
  return tell_dynamics(device, state, [](const Dynamics& d) { return d.performance_state; });
}
nvmlReturn_t nvmlDeviceGetPowerState(nvmlDevice_t device, nvmlPstates_t* state) {
  return nvmlDeviceGetPerformanceState(device, state);
}
nvmlReturn_t nvmlDeviceGetSupportedPerformanceStates(nvmlDevice_t device, nvmlPstates_t* states,
                                                     unsigned size) {
  return with_gpu(device, [&](const Gpu& gpu) -> nvmlReturn_t {
    if (states == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    const std::vector<nvmlPstates_t> known = states_of(gpu.model().clocks);
    const std::size_t room = size / sizeof(nvmlPstates_t);  // the size is in bytes
    if (room < known.size()) return NVML_ERROR_INSUFFICIENT_SIZE;
    std::fill(states, states + room, NVML_PSTATE_UNKNOWN);
    std::ranges::copy(known, states);
    return NVML_SUCCESS;
  });
}
nvmlReturn_t nvmlDeviceGetMinMaxClockOfPState(nvmlDevice_t device, nvmlClockType_t type,
                                              nvmlPstates_t state, unsigned* lowest,
                                              unsigned* highest) {
  if (!is_clock(type) || lowest == nullptr || highest == nullptr)
    return NVML_ERROR_INVALID_ARGUMENT;
  return with_gpu(device, [&](const Gpu& gpu) -> nvmlReturn_t {
    const Clocks& clocks = gpu.model().clocks;
    const std::vector<nvmlPstates_t> known = states_of(clocks);
    if (std::ranges::find(known, state) == known.end()) return NVML_ERROR_NOT_SUPPORTED;
    *lowest = type == NVML_CLOCK_MEM && state == NVML_PSTATE_0 ? clocks.memory_max_mhz
                                                               : min_mhz(clocks, type);
    *highest = type == NVML_CLOCK_MEM && state != NVML_PSTATE_0 ? clocks.memory_idle_mhz
                                                                : max_mhz(clocks, type);
    return NVML_SUCCESS;
  });
}

nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t device, unsigned long long* out) {
  return tell_now(device, out, reasons);
}
nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t device,
                                                       unsigned long long* out) {
  return tell_now(device, out, reasons);
}
nvmlReturn_t nvmlDeviceGetSupportedClocksEventReasons(nvmlDevice_t device,
                                                      unsigned long long* out) {
  return supported_reasons(device, out);
}
nvmlReturn_t nvmlDeviceGetSupportedClocksThrottleReasons(nvmlDevice_t device,
                                                         unsigned long long* out) {
  return supported_reasons(device, out);
}
nvmlReturn_t nvmlDeviceGetAdaptiveClockInfoStatus(nvmlDevice_t device, unsigned* status) {
  return tell(device, status, [](const Gpu&) { return 0; });
}
nvmlReturn_t nvmlDeviceGetClkMonStatus(nvmlDevice_t device, nvmlClkMonStatus_t* status) {
  return tell(device, status, [](const Gpu&) { return nvmlClkMonStatus_t{}; });
}
// Nothing ever holds the simulated clocks back against their will.
nvmlReturn_t nvmlDeviceGetViolationStatus(nvmlDevice_t device, nvmlPerfPolicyType_t policy,
                                          nvmlViolationTime_t* time) {
  if (policy < 0 || policy >= NVML_PERF_POLICY_COUNT) return NVML_ERROR_INVALID_ARGUMENT;
  return tell_now(device, time, [](const Gpu&, const GpuTelemetry& now) {
    return nvmlViolationTime_t{static_cast<unsigned long long>(now.now_ns / 1000), 0};
  });
}

nvmlReturn_t nvmlDeviceGetGpcClkVfOffset(nvmlDevice_t device, int* offset) {
  return no_offset(device, offset);
}
nvmlReturn_t nvmlDeviceGetMemClkVfOffset(nvmlDevice_t device, int* offset) {
  return no_offset(device, offset);
}
nvmlReturn_t nvmlDeviceGetGpcClkMinMaxVfOffset(nvmlDevice_t device, int* lowest, int* highest) {
  return no_offset_range(device, lowest, highest);
}
nvmlReturn_t nvmlDeviceGetMemClkMinMaxVfOffset(nvmlDevice_t device, int* lowest, int* highest) {
  return no_offset_range(device, lowest, highest);
}
nvmlReturn_t nvmlDeviceGetClockOffsets(nvmlDevice_t device, nvmlClockOffset_t* info) {
  if (const nvmlReturn_t checked = check_version(info, 1); checked != NVML_SUCCESS) return checked;
  return with_gpu(device, [&](const Gpu& gpu) -> nvmlReturn_t {
    const std::vector<nvmlPstates_t> known = states_of(gpu.model().clocks);
    if (!is_clock(info->type) || std::ranges::find(known, info->pstate) == known.end())
      return NVML_ERROR_INVALID_ARGUMENT;
    info->offset_mhz = 0;  // fixed: no room to move
    info->min_mhz = 0;
    info->max_mhz = 0;
    return NVML_SUCCESS;
  });
}

nvmlReturn_t nvmlDeviceGetPerformanceModes(nvmlDevice_t device, nvmlDevicePerfModes_t* modes) {
  if (const nvmlReturn_t checked = check_version(modes, 1); checked != NVML_SUCCESS) return checked;
  return with_gpu(device, [&](const Gpu& gpu) {
    const Clocks& clocks = gpu.model().clocks;
    std::string text;
    for (const nvmlPstates_t state : states_of(clocks)) {
      if (!text.empty()) text += " ; ";
      text += mode_text(static_cast<unsigned>(state), clocks,
                        state == NVML_PSTATE_0 ? clocks.memory_max_mhz : clocks.memory_idle_mhz);
    }
    put_text(text, modes->text);
    return NVML_SUCCESS;
  });
}
nvmlReturn_t nvmlDeviceGetCurrentClockFreqs(nvmlDevice_t device,
                                            nvmlDeviceCurrentClockFreqs_t* freqs) {
  if (const nvmlReturn_t checked = check_version(freqs, 1); checked != NVML_SUCCESS) return checked;
  return with_reading(device, [&](const Gpu& gpu, const GpuReading& reading) {
    const Dynamics now = dynamics_of(gpu.model(), reading.figures);
    put_text(mode_text(now.performance_state, gpu.model().clocks, now.memory_mhz), freqs->text);
    return NVML_SUCCESS;
  });
}

}  // namespace aliquot::simdriver::nvml::bodies
