// The exported functions of libnvidia-ml, one per row of the table: the body where there is one.
// A machine's copy hides those that its version has not (library_versions.h).

#include "simdriver/nvml/answer.h"
#include "simdriver/nvml/bodies.h"

namespace aliquot::simdriver::nvml {
namespace {

template <driver_abi::Nvml kId>
driver_abi::NvmlResult<kId> unanswered() {
  if constexpr (kId == driver_abi::Nvml::nvmlErrorString)
    return "";
  else
    return with_library([](const Library::Held&) { return NVML_ERROR_NOT_SUPPORTED; });
}

}  // namespace
}  // namespace aliquot::simdriver::nvml

#define ALIQUOT_ENTRY(symbol, base, since, until, kind, params, args)                            \
  extern "C" __attribute__((                                                                     \
      visibility("default"))) aliquot::driver_abi::NvmlResult<aliquot::driver_abi::Nvml::symbol> \
      symbol params {                                                                            \
    namespace nvml = aliquot::simdriver::nvml;                                                   \
    if (nvml::bodies::symbol == nullptr)                                                         \
      return nvml::unanswered<aliquot::driver_abi::Nvml::symbol>();                              \
    return nvml::bodies::symbol args;                                                            \
  }
#include "driver_abi/nvml_entry_points.def"
