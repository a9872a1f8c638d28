// A pointer type for each row of the CUDA table, by its symbol (fn::cuMemAlloc_v2) and by its id
// (CudaFunction<Cuda::cuMemAlloc_v2>), and the typed pointers of a loaded driver.
//
// Apart from cuda_table.h because it pulls in every type of the interface. Types only; for who may
// call see real_library.h.
#pragma once

#include "driver_abi/cuda_table.h"
#include "driver_abi/cuda_types.h"
#include "driver_abi/real_library.h"

namespace aliquot::driver_abi {

namespace fn {
#define ALIQUOT_ENTRY(symbol, base, since, until, kind, params, args) \
  using symbol = CUresult(*) params;
#include "driver_abi/cuda_entry_points.def"
}  // namespace fn

template <Cuda kId>
struct CudaFunctionOf;
#define ALIQUOT_ENTRY(symbol, base, since, until, kind, params, args) \
  template <>                                                         \
  struct CudaFunctionOf<Cuda::symbol> {                               \
    using Type = fn::symbol;                                          \
  };
#include "driver_abi/cuda_entry_points.def"
template <Cuda kId>
using CudaFunction = typename CudaFunctionOf<kId>::Type;

// Null where the driver does not export it.
template <Cuda kId>
CudaFunction<kId> function(const RealCuda& real) {
  return reinterpret_cast<CudaFunction<kId>>(real.symbol(kId));
}

}  // namespace aliquot::driver_abi
