// Why a set of GPUs was chosen, in words: "0-3 share 2 NVLinks each way, ring 50 GB/s; 4-7 equal,
// kept whole". Pure; any thread.
#pragma once

#include <string>

#include "model/topology.h"
#include "topology/search.h"

namespace aliquot::topology {

// `chosen` answers `request` on `node`, of which `shape` is the shape. Takes all other sets into
// account, so it costs a search.
std::string reason_for(const model::NodeTopology& node, const Shape& shape, const Request& request,
                       GpuSet chosen);

}  // namespace aliquot::topology
