// BestFit, as the FGD paper's authors run it: least CPU and GPU left after placing, each against
// the largest node (facts: 128 cores, 8 GPUs).
//
// The scheduler's loop only.
#pragma once

#include <memory>

#include "scheduler/policy.h"

namespace aliquot::scheduler {

std::unique_ptr<Policy> make_best_fit();

}  // namespace aliquot::scheduler
