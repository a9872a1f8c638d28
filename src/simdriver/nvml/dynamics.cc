#include "simdriver/nvml/dynamics.h"

#include <algorithm>

namespace aliquot::simdriver::nvml {
namespace {

// At full load a GPU draws this much of what lies between idle and its limit.
constexpr unsigned kBusyPowerPercent = 90;

// `from` at 0 percent, `to` at 100.
constexpr unsigned between(unsigned from, unsigned to, unsigned percent) {
  return from + (to - from) * percent / 100;
}

unsigned busy_power_mw(const GpuModel& model, const GpuTelemetry& now) {
  const unsigned limit = std::max(power_limit_mw(model, now), model.power.idle_mw);
  return between(model.power.idle_mw, limit, kBusyPowerPercent);
}

}  // namespace

unsigned power_limit_mw(const GpuModel& model, const GpuTelemetry& now) {
  return now.power_limit_mw != 0 ? now.power_limit_mw : model.power.limit_default_mw;
}

Dynamics dynamics_of(const GpuModel& model, const GpuTelemetry& now) {
  const unsigned percent = std::min(now.gpu_percent, 100u);
  const Clocks& clocks = model.clocks;
  const Temperatures& heat = model.temperatures;
  Dynamics result;
  result.idle = percent == 0 && now.process_count == 0;
  const unsigned limit = now.clock_limit_mhz != 0 ? now.clock_limit_mhz : clocks.graphics_max_mhz;
  result.graphics_mhz = result.idle ? clocks.graphics_min_mhz : limit;
  result.memory_mhz = result.idle ? clocks.memory_idle_mhz : clocks.memory_max_mhz;
  result.video_mhz = between(0, clocks.video_max_mhz, result.idle ? 40 : 100);
  // Memory that scales down takes the GPU to P8 when idle; HBM does not, and stays in P0.
  const bool scales = clocks.memory_idle_mhz != clocks.memory_max_mhz;
  result.performance_state = result.idle && scales ? 8 : 0;
  result.pcie_generation = result.idle && scales ? 1 : model.pcie.generation;
  const unsigned busy_mw = busy_power_mw(model, now);
  result.power_mw = between(model.power.idle_mw, busy_mw, percent);
  result.temperature_c = now.heat_c != 0 ? now.heat_c : between(heat.idle_c, heat.busy_c, percent);
  result.memory_temperature_c =
      heat.memory_max_c == 0 ? 0 : between(heat.idle_c + 2, heat.busy_c + 10, percent);
  // mW times ns is pJ; divided in two steps so that a year fits.
  const auto idle_us = static_cast<std::uint64_t>(now.now_ns) / 1000;
  const auto busy_us = static_cast<std::uint64_t>(now.busy_ns) / 1000;
  result.energy_mj =
      (idle_us * model.power.idle_mw + busy_us * (busy_mw - model.power.idle_mw)) / 1'000'000;
  return result;
}

}  // namespace aliquot::simdriver::nvml
