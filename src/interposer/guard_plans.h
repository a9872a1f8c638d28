// What each guarded name of the CUDA table does beyond admitting the process.
//
// Every kGuard row is reached only by a process whose lease stands; the others are answered
// NO_DEVICE without asking the driver. The plan says what follows. Constant; any thread.
#pragma once

#include <string_view>

namespace aliquot::interposer {

enum class Plan {
  kNone,    // no plan: does not compile for a kGuard row
  kFirst,   // own body, also for a process without a lease
  kOwn,     // own body
  kLaunch,  // kernels and graphs: through the compute gate, counted as launches
  kWork,    // copies, fills and host functions: through the compute gate
  kOrder,   // orders streams, takes no time of a GPU: admitted
  kWait,    // waits for work, whereupon pools give memory back: they are read anew
  kBegin,   // begins a stream's capture
  kEnd,     // ends one
  kView,    // the driver answers for the leased GPUs only: admitted
};

consteval Plan plan_of(std::string_view base) {
#define ALIQUOT_PLAN(plan, name) \
  if (base == #name) return Plan::plan;
#include "interposer/guard_plans.def"
  return Plan::kNone;
}

}  // namespace aliquot::interposer
