// How long a simulated GPU worked, and for whom: the device's own account, to hold others against.
// One thread.
#pragma once

#include <map>
#include <utility>

#include "common/clock.h"
#include "common/result.h"
#include "simdriver/machine.h"

namespace aliquot::simdriver {

// In the machine's time since it was started.
struct DeviceUse {
  Nanoseconds now = 0;
  Nanoseconds busy = 0;                    // a kernel ran
  std::map<std::int32_t, Nanoseconds> of;  // by process, of the contexts that it has now
  // No kernel ran while the device switched from one process to the other.
  std::map<std::pair<std::int32_t, std::int32_t>, Nanoseconds> switching;
};

Result<DeviceUse> device_use(const RunningMachine& machine, unsigned gpu);

}  // namespace aliquot::simdriver
