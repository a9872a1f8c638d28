// Faults on command, for the command line and tests: tells the device server of a running machine
// to break or mend something (docs/simulated-machine.md). One thread.
#pragma once

#include "common/result.h"
#include "simdriver/machine.h"
#include "simdriver/telemetry.h"

namespace aliquot::simdriver {

Status inject_fault(const RunningMachine& machine, const FaultRequest& fault);

}  // namespace aliquot::simdriver
