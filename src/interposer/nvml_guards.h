// One declaration per NVML row. The rows of nvml_guard_plans.def have a body in an nvml_*.cc file;
// a missing one fails to link.
//
// A body runs on the caller's thread with Inside set, also in a process without a lease (ask
// tenant().attached() and load(Library::kNvml)). It calls the library through real::.
#pragma once

#include "driver_abi/nvml_functions.h"

namespace aliquot::interposer::nvml_guard {
#define ALIQUOT_ENTRY(symbol, base, since, until, kind, params, args) \
  driver_abi::NvmlResult<driver_abi::Nvml::symbol> symbol params;
#include "driver_abi/nvml_entry_points.def"
}  // namespace aliquot::interposer::nvml_guard
