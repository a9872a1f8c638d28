// Every row of the NVML table as a weak function that counts and succeeds; fake_nvml.cc and
// fake_nvml_processes.cc have the ones with a meaning.
#include <type_traits>

#include "driver_abi/nvml_functions.h"
#include "interposer/testing/fake_nvml_state.h"

template <class Result>
static Result answer(const char* name) {
  const nvmlReturn_t result = aliquot::interposer::testing::nvml_books().enter(name);
  if constexpr (std::is_same_v<Result, nvmlReturn_t>)
    return result;
  else
    return "the fake's own words";
}

#pragma GCC diagnostic ignored "-Wunused-parameter"
#define ALIQUOT_ENTRY(symbol, base, since, until, kind, params, args)                           \
  extern "C" [[gnu::visibility("default"),                                                      \
               gnu::weak]] aliquot::driver_abi::NvmlResult<aliquot::driver_abi::Nvml::symbol>   \
      symbol params {                                                                           \
    return answer<aliquot::driver_abi::NvmlResult<aliquot::driver_abi::Nvml::symbol>>(#symbol); \
  }
#include "driver_abi/nvml_entry_points.def"
