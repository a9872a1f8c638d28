// Random: any node that fits, any fitting GPU of it for a share. The floor in comparisons, for
// studies only; reproducible by its seed.
//
// The scheduler's loop only.
#pragma once

#include <cstdint>
#include <memory>

#include "scheduler/policy.h"

namespace aliquot::scheduler {

std::unique_ptr<Policy> make_random(std::uint64_t seed);

}  // namespace aliquot::scheduler
