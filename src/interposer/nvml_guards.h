// One declaration per row of the NVML table. Rows whose plan has an own body (nvml_plans.def) have
// it in an nvml_guards_*.cc file; a missing one fails to link.
//
// A body runs on the caller's thread with Inside set, calls the library through real::, returns its
// own error unchanged and touches no output then. Null outputs are refused by the body itself
// wherever the library is not asked first.
#pragma once

#include "driver_abi/nvml_functions.h"

namespace aliquot::interposer::nvml_guard {
#define ALIQUOT_ENTRY(symbol, base, since, until, kind, params, args) \
  driver_abi::NvmlResult<driver_abi::Nvml::symbol> symbol params;
#include "driver_abi/nvml_entry_points.def"
}  // namespace aliquot::interposer::nvml_guard
