// The way into each guarded NVML row: admit the process, then the row's body.
//
// Rows that nvml_guard_plans.def names have a body in namespace nvml_guard (nvml_*.cc), which also
// answers a process without a lease; the others are passed on for an admitted process.
#include <type_traits>

#include "interposer/inside.h"
#include "interposer/nvml_guards.h"
#include "interposer/real_driver.h"

namespace aliquot::interposer {
namespace {

consteval bool has_own_body([[maybe_unused]] std::string_view symbol) {
#define ALIQUOT_OWN_BODY(name) \
  if (symbol == #name) return true;
#include "interposer/nvml_guard_plans.def"
  return false;
}

// What a process without a lease is told.
template <class Result>
Result no_driver() {
  if constexpr (std::is_same_v<Result, const char*>)
    return "no driver for this program";
  else
    return NVML_ERROR_DRIVER_NOT_LOADED;
}

}  // namespace
}  // namespace aliquot::interposer

#define ALIQUOT_WAY_IN_kPass(symbol, params, args)
#define ALIQUOT_WAY_IN_kDeny(symbol, params, args)
#define ALIQUOT_WAY_IN_kGuard(symbol, params, args)                                    \
  extern "C" [[gnu::visibility(                                                        \
      "hidden")]] aliquot::driver_abi::NvmlResult<aliquot::driver_abi::Nvml::symbol>   \
      aliquot_guard_##symbol params {                                                  \
    using namespace aliquot::interposer;                                               \
    using Result = aliquot::driver_abi::NvmlResult<aliquot::driver_abi::Nvml::symbol>; \
    if (Inside::now()) return real::symbol args;                                       \
    const Inside inside;                                                               \
    if constexpr (has_own_body(#symbol)) return nvml_guard::symbol args;               \
    if (!load(Library::kNvml)) return no_driver<Result>();                             \
    return real::symbol args;                                                          \
  }
#define ALIQUOT_ENTRY(symbol, base, since, until, kind, params, args) \
  ALIQUOT_WAY_IN_##kind(symbol, params, args)
#include "driver_abi/nvml_entry_points.def"
