// GpuPacking, as the FGD paper's authors run it: first GPUs in use, then free GPUs of nodes in use,
// then idle nodes.
//
// The scheduler's loop only.
#pragma once

#include <memory>

#include "scheduler/policy.h"

namespace aliquot::scheduler {

std::unique_ptr<Policy> make_packing();

}  // namespace aliquot::scheduler
