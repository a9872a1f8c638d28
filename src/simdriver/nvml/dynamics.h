// How a GPU's clocks, power and temperature follow from its use. Pure; all of it assumed
// (docs/simulated-machine.md): linear in utilisation, without inertia, so that figures agree with
// each other and with the samples. Any thread.
#pragma once

#include <cstdint>

#include "simdriver/machine_spec.h"
#include "simdriver/telemetry.h"

namespace aliquot::simdriver::nvml {

struct Dynamics {
  bool idle = true;  // no kernel in the newest sample, and no process
  unsigned graphics_mhz = 0;
  unsigned memory_mhz = 0;
  unsigned video_mhz = 0;
  unsigned performance_state = 0;
  unsigned power_mw = 0;
  unsigned temperature_c = 0;
  unsigned memory_temperature_c = 0;
  unsigned pcie_generation = 0;
  std::uint64_t energy_mj = 0;  // since the machine was started
};

Dynamics dynamics_of(const GpuModel& model, const GpuTelemetry& now);

// The limit in force.
unsigned power_limit_mw(const GpuModel& model, const GpuTelemetry& now);

}  // namespace aliquot::simdriver::nvml
