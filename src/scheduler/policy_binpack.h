// binpack: the fullest node that fits, and on it the fullest GPU.
//
// The scheduler's loop only.
#pragma once

#include <memory>

#include "scheduler/policy.h"

namespace aliquot::scheduler {

std::unique_ptr<Policy> make_binpack();

}  // namespace aliquot::scheduler
