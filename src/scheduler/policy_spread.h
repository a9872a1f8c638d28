// spread: the emptiest node that fits, and on it the emptiest GPU.
//
// The scheduler's loop only.
#pragma once

#include <memory>

#include "scheduler/policy.h"

namespace aliquot::scheduler {

std::unique_ptr<Policy> make_spread();

}  // namespace aliquot::scheduler
