// DotProd, as the FGD paper's authors run it: the smaller the product of what is free and what is
// asked, over CPU and GPU, the better.
//
// The scheduler's loop only.
#pragma once

#include <memory>

#include "scheduler/policy.h"

namespace aliquot::scheduler {

std::unique_ptr<Policy> make_dot_product();

}  // namespace aliquot::scheduler
