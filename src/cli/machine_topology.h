// The link graph of a simulated machine, from what it is made of. Pure; any thread.
#pragma once

#include "model/topology.h"
#include "simdriver/machine_spec.h"

namespace aliquot::cli {

// The rates of its own models: an NVLink carries what the slower end's links do, a PCIe path is of
// the lower of both generations.
model::NodeTopology topology_of(const simdriver::MachineSpec& machine);

}  // namespace aliquot::cli
