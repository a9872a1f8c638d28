// A pointer type for each row of the CUDA table, by its symbol: fn::cuMemAlloc_v2.
//
// Apart from cuda_table.h because it pulls in every type of the interface. Types only.
#pragma once

#include "driver_abi/cuda_types.h"

namespace aliquot::driver_abi::fn {
#define ALIQUOT_ENTRY(symbol, base, since, until, kind, params, args) \
  using symbol = CUresult(*) params;
#include "driver_abi/cuda_entry_points.def"
}  // namespace aliquot::driver_abi::fn
