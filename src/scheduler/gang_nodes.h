// Which nodes a gang of whole GPUs lies on, and which GPUs it has there, where the policy minds
// links between nodes (Policy::arranges_gangs).
//
// A gang sends out of each of its nodes, so it touches few: again and again as many members as one
// node can hold go to the node that the policy likes best for their sum. A gang that fits one node
// is placed there like one request. In the end the policy chooses the GPUs of all nodes together.
//
// Leaves to others: domains and what is not whole GPUs (gang.h). The scheduler's loop only.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "scheduler/scheduler.h"

namespace aliquot::scheduler {

struct GangUnit {
  ClassId demand;
  std::size_t member;  // position among all units, in the order of the gang
};

// Whether all units that ask GPUs ask whole ones without ties to each other.
bool is_gatherable(const Scheduler& scheduler, std::span<const GangUnit> units);

// Places the units behind the first `done` on nodes of `within`, and says how many are placed now;
// the rest found no room this way or asks no GPU. placed[unit.member] is the decision.
std::size_t gather(Scheduler& scheduler, std::span<const GangUnit> units, std::size_t done,
                   std::span<const NodeId> within, std::vector<Decision>& placed);

// The same on a single node, or none of them.
std::size_t gather_on_one(Scheduler& scheduler, std::span<const GangUnit> units,
                          std::span<const NodeId> within, std::vector<Decision>& placed);

// Lets the policy choose among the GPUs that are idle on the nodes of the gang, reserved already.
void arrange(Scheduler& scheduler, std::vector<Decision>& placed);

}  // namespace aliquot::scheduler
