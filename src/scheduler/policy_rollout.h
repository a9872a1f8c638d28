// rollout: our own. A placement costs the rise of what would stay idle on the node (rollout.h), and
// a little for opening an idle node; the least cost wins. It allocates more of a filling cluster
// than FGD does (docs/adr), with the same knowledge: the shapes expected and how often they come.
//
// The scheduler's loop only.
#pragma once

#include <memory>
#include <vector>

#include "scheduler/policy.h"
#include "scheduler/rollout_tuning.h"
#include "scheduler/workload.h"

namespace aliquot::scheduler {

std::unique_ptr<Policy> make_rollout(const Workload& workload,
                                     const std::vector<ModelCapacity>& capacity,
                                     const RolloutTuning& tuning);

}  // namespace aliquot::scheduler
