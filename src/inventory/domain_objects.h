// What the Kubernetes API says of where nodes lie: Node objects with their labels, Volcano's
// HyperNodes, Topology objects of Kueue and KAI, read from JSON as `kubectl get ... -o json` prints
// it.
//
// Leaves to others: making paths of it (topology/domains.h). Nothing is half-read: a text gives all
// or an error that says where. Objects of other kinds are passed over. Pure; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"
#include "model/domains.h"

namespace aliquot::inventory {

struct DomainObjects {
  std::vector<model::LabelledHost> hosts;
  std::vector<model::HyperNode> hyper_nodes;
  std::vector<std::string> levels;  // of the one Topology, outermost first; empty without one
};

// A List, an array of objects, or one object. `where` stands in errors.
Result<DomainObjects> parse_domain_objects(std::string_view text, std::string_view where);

}  // namespace aliquot::inventory
