// Slurm's topology.conf: topology/tree (SwitchName= with Nodes= or Switches=) or topology/block
// (BlockName= Nodes=, BlockSizes=). Pure; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"
#include "model/domains.h"

namespace aliquot::topology {

// Errors are "where:line: what".
Result<std::vector<model::HostPath>> parse_topology_conf(std::string_view text,
                                                         std::string_view where);

// "n[1-3,7],m2" as Slurm writes lists of hosts; digits keep their width.
Result<std::vector<std::string>> expanded_hosts(std::string_view list);

}  // namespace aliquot::topology
