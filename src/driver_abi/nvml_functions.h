// A pointer type for each row of the NVML table, by its symbol: fn::nvmlDeviceGetCount_v2.
//
// Apart from nvml_table.h because it pulls in every type of the interface. Types only.
#pragma once

#include <type_traits>

#include "driver_abi/nvml_table.h"
#include "driver_abi/nvml_types.h"

namespace aliquot::driver_abi {

// What a row's function gives back: a result, but for the one that gives the result's text.
template <Nvml kId>
using NvmlResult = std::conditional_t<kId == Nvml::nvmlErrorString, const char*, nvmlReturn_t>;

namespace fn {
#define ALIQUOT_ENTRY(symbol, base, since, until, kind, params, args) \
  using symbol = NvmlResult<Nvml::symbol>(*) params;
#include "driver_abi/nvml_entry_points.def"
}  // namespace fn

}  // namespace aliquot::driver_abi
