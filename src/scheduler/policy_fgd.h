// FGD, fragmentation gradient descent (ATC 2023), with the authors' integer score: where the
// expected fragmentation grows least, in 101 steps of a sigmoid. Its ties, decided by rank, are a
// part of how well it packs.
//
// The scheduler's loop only.
#pragma once

#include <memory>

#include "scheduler/policy.h"
#include "scheduler/workload.h"

namespace aliquot::scheduler {

std::unique_ptr<Policy> make_fgd(Workload workload);

}  // namespace aliquot::scheduler
