// A pointer type for each row of the NVML table, by its symbol (fn::nvmlDeviceGetCount_v2) and by
// its id (NvmlFunction<Nvml::nvmlDeviceGetCount_v2>), and the typed pointers of a loaded library.
//
// Apart from nvml_table.h because it pulls in every type of the interface. Types only; for who may
// call see real_library.h.
#pragma once

#include <type_traits>

#include "driver_abi/nvml_table.h"
#include "driver_abi/nvml_types.h"
#include "driver_abi/real_library.h"

namespace aliquot::driver_abi {

// What a row's function gives back: a result, but for the one that gives the result's text.
template <Nvml kId>
using NvmlResult = std::conditional_t<kId == Nvml::nvmlErrorString, const char*, nvmlReturn_t>;

namespace fn {
#define ALIQUOT_ENTRY(symbol, base, since, until, kind, params, args) \
  using symbol = NvmlResult<Nvml::symbol>(*) params;
#include "driver_abi/nvml_entry_points.def"
}  // namespace fn

template <Nvml kId>
struct NvmlFunctionOf;
#define ALIQUOT_ENTRY(symbol, base, since, until, kind, params, args) \
  template <>                                                         \
  struct NvmlFunctionOf<Nvml::symbol> {                               \
    using Type = fn::symbol;                                          \
  };
#include "driver_abi/nvml_entry_points.def"
template <Nvml kId>
using NvmlFunction = typename NvmlFunctionOf<kId>::Type;

// Null where the library does not export it.
template <Nvml kId>
NvmlFunction<kId> function(const RealNvml& real) {
  return reinterpret_cast<NvmlFunction<kId>>(real.symbol(kId));
}

}  // namespace aliquot::driver_abi
