// What each guarded name of the NVML table does beyond the checks that all of them share.
//
// Constant; any thread.
#pragma once

#include <string_view>

namespace aliquot::interposer {

enum class NvmlPlan {
  kNone,     // no plan: does not compile for a kGuard row
  kAlways,   // own body, whatever the state of the library
  kLists,    // own body once initialised, also where the lease was refused: there is nothing to see
  kOwn,      // own body; the devices it is given are leased
  kChecked,  // the library answers; the devices it is given are leased
};

consteval NvmlPlan nvml_plan_of(std::string_view base) {
#define ALIQUOT_PLAN(plan, name) \
  if (base == #name) return NvmlPlan::plan;
#include "interposer/nvml_plans.def"
  return NvmlPlan::kNone;
}

}  // namespace aliquot::interposer
