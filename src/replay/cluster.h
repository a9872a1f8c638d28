// What jobs are replayed on, and what had to be assumed of it. A value.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "model/cluster.h"
#include "model/topology.h"

namespace aliquot::replay {

struct Cluster {
  std::string name;
  std::vector<model::NodeSpec> nodes;
  std::map<std::string, model::NodeTopology> topologies;  // by NodeSpec::topology
  std::vector<std::string> assumptions;
};

}  // namespace aliquot::replay
