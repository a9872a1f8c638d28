// GpuClustering, as the FGD paper's authors run it: requests of one kind (share, one GPU, two, ...)
// keep to nodes that run this kind already, fuller nodes first.
//
// The scheduler's loop only.
#pragma once

#include <memory>

#include "scheduler/policy.h"

namespace aliquot::scheduler {

std::unique_ptr<Policy> make_clustering();

}  // namespace aliquot::scheduler
