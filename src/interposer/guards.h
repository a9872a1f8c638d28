// One declaration per table row. Rows whose plan is kOwn (guard_plans.def) have a body in a
// guards_*.cc file; a missing one fails to link.
//
// A body runs on the caller's thread, in an attached process, with Inside set; it calls the driver
// through real::, returns the driver's own error unchanged and touches no output then.
#pragma once

#include "driver_abi/cuda_types.h"

namespace aliquot::interposer::guard {
#define ALIQUOT_ENTRY(symbol, base, since, until, kind, params, args) CUresult symbol params;
#include "driver_abi/cuda_entry_points.def"
}  // namespace aliquot::interposer::guard
