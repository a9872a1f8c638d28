// Faults on command, for the command line and tests: tells the device server of a running machine
// to break or mend something (docs/simulated-machine.md). One thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/result.h"
#include "simdriver/machine.h"
#include "simdriver/telemetry.h"

namespace aliquot::simdriver {

Status inject_fault(const RunningMachine& machine, const FaultRequest& fault);

// The value of the kLinkErrors that "[LINK:]COUNT" orders, LINK left out: 0; nothing: other words.
std::optional<std::uint64_t> link_errors_from(std::string_view order);

// "cuMemAlloc_v2:3=2": in every process, the third call from now answers 2. ":3" left out: the
// next call; "=2" left out: 999 (CUDA_ERROR_UNKNOWN).
Status fail_call(const RunningMachine& machine, const std::string& order);
// Whether the driver finds its own functions through the process's dlsym, as that of WSL does.
Status look_up_through_dlsym(const RunningMachine& machine, bool on);
// Lifts both of the above.
Status lift_call_faults(const RunningMachine& machine);

}  // namespace aliquot::simdriver
