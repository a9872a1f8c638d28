// Declares a body for every row of the NVML table, in namespace bodies. A body is written where
// there is something to answer; a row without one has no address here (weak) and answers
// NVML_ERROR_NOT_SUPPORTED, with its reason in unsupported.def.
//
// Bodies lie in bodies_SUBJECT.cc and are linked as objects: in a static library nobody would pull
// a weak symbol in.
#pragma once

#include "driver_abi/nvml_functions.h"

namespace aliquot::simdriver::nvml::bodies {

#define ALIQUOT_ENTRY(symbol, base, since, until, kind, params, args) \
  __attribute__((weak)) driver_abi::NvmlResult<driver_abi::Nvml::symbol> symbol params;
#include "driver_abi/nvml_entry_points.def"

}  // namespace aliquot::simdriver::nvml::bodies
