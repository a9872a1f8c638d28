// topology: GPUs that talk fastest to each other. Of all nodes the one whose best free set has the
// widest ring, among equals the fullest; inside the node the set that topology's exact search
// names, so that cliques and linked pairs stay whole for others. One GPU takes the one whose loss
// harms least; shares go to GPUs that are shared already.
//
// A gang that cannot lie on one node touches few, and its GPUs are chosen by their way out through
// the NICs (policy_topology_gang.h).
//
// Nodes name their link shape (NodeSpec::topology). Where that is unknown all pairs count as equal,
// and a demand for links is refused.
//
// The scheduler's loop only.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "model/topology.h"
#include "scheduler/policy.h"

namespace aliquot::scheduler {

std::unique_ptr<Policy> make_topology(const std::map<std::string, model::NodeTopology>& shapes);

}  // namespace aliquot::scheduler
