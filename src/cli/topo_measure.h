// `aliquot topo --measure`: what links carry beside what they could, as text and JSON.
#pragma once

#include <string>
#include <vector>

#include "cli/link_measure.h"
#include "cli/topo_command.h"
#include "inventory/nvml.h"

namespace aliquot::cli {

// Measures the GPUs of the driver that `sim` names (topo's own rule) beside its link graph.
Result<std::string> topo_measured(const SourcedTopology& topology, const std::string& sim,
                                  bool json);

// Pure. `gpus` in the order of the graph; what differs in number is left out.
std::string measure_text(const SourcedTopology& topology,
                         const std::vector<inventory::NvmlGpu>& gpus, const LinkMeasure& measure);
std::string measure_json(const SourcedTopology& topology,
                         const std::vector<inventory::NvmlGpu>& gpus, const LinkMeasure& measure);

}  // namespace aliquot::cli
