// The hand-written bodies of driver entry points: sim_<symbol>, of the table's own signature (a
// wrong one does not compile). A row without a body answers CUDA_ERROR_NOT_SUPPORTED. entries.cc
// makes the exported functions; bodies lie in bodies_<subject>.cc.
#pragma once

#include "driver_abi/cuda_types.h"

extern "C" {
#define ALIQUOT_ENTRY(symbol, base, since, until, kind, params, args) \
  __attribute__((weak, visibility("hidden"))) CUresult sim_##symbol params;
#include "driver_abi/cuda_entry_points.def"
}
