// The way into each guarded row of the NVML table: the checks that all share, then the row's plan.
#include "interposer/nvml_guards.h"

#include <type_traits>

#include "interposer/inside.h"
#include "interposer/nvml_plans.h"
#include "interposer/nvml_view.h"
#include "interposer/real_driver.h"

namespace aliquot::interposer {
namespace {

// Handles of GPUs that are not of the lease cannot have come from us.
bool are_leased() { return true; }
template <class First, class... Rest>
bool are_leased(const First& first, const Rest&... rest) {
  if constexpr (std::is_same_v<First, nvmlDevice_t>) {
    if (!nvml_view::is_leased(first)) return false;
  }
  return are_leased(rest...);
}

// Whether the plan's body may run.
template <NvmlPlan kPlan>
nvmlReturn_t admit(driver_abi::Nvml row, bool devices_are_leased) {
  if constexpr (kPlan == NvmlPlan::kAlways) return NVML_SUCCESS;
  if (!nvml_view::started()) return NVML_ERROR_UNINITIALIZED;
  if constexpr (kPlan == NvmlPlan::kLists) return NVML_SUCCESS;
  if (!devices_are_leased) return NVML_ERROR_INVALID_ARGUMENT;
  if (!nvml_view::leased()) return NVML_ERROR_DRIVER_NOT_LOADED;
  return has(row) ? NVML_SUCCESS : NVML_ERROR_FUNCTION_NOT_FOUND;
}

// A call from inside one of our calls is the library's own.
template <driver_abi::Nvml kRow, NvmlPlan kPlan, class Leased, class Body, class Real>
driver_abi::NvmlResult<kRow> enter(Leased leased, Body body, Real real) {
  static_assert(kPlan != NvmlPlan::kNone, "nvml_plans.def says nothing about this row");
  if constexpr (kPlan == NvmlPlan::kAlways) {
    const Inside inside;
    return body();
  } else {
    if (Inside::now()) return real();
    const Inside inside;
    const nvmlReturn_t refused = admit<kPlan>(kRow, leased());
    if (refused != NVML_SUCCESS) return refused;
    if constexpr (kPlan == NvmlPlan::kChecked)
      return real();
    else
      return body();
  }
}

}  // namespace
}  // namespace aliquot::interposer

// entry_stubs.S jumps here.
#define ALIQUOT_WAY_IN_kPass(symbol, base, params, args)
#define ALIQUOT_WAY_IN_kDeny(symbol, base, params, args)
#define ALIQUOT_WAY_IN_kGuard(symbol, base, params, args)                            \
  extern "C" [[gnu::visibility(                                                      \
      "hidden")]] aliquot::driver_abi::NvmlResult<aliquot::driver_abi::Nvml::symbol> \
      aliquot_guard_##symbol params {                                                \
    using namespace aliquot::interposer;                                             \
    return enter<aliquot::driver_abi::Nvml::symbol, nvml_plan_of(#base)>(            \
        [&] { return are_leased args; }, [&] { return nvml_guard::symbol args; },    \
        [&] { return real::symbol args; });                                          \
  }
#define ALIQUOT_ENTRY(symbol, base, since, until, kind, params, args) \
  ALIQUOT_WAY_IN_##kind(symbol, base, params, args)
#include "driver_abi/nvml_entry_points.def"
