// What `aliquot smi topo|nvlink|mig` prints, laid out as nvidia-smi does. Pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "cli/smi_view.h"
#include "inventory/nvml.h"

namespace aliquot::cli {

// `nvlink --status` of one GPU: a line per link with its rate, or that it is inactive.
std::string nvlink_status(const SmiGpu& gpu, const std::vector<inventory::NvmlNvlink>& links);

// One GPU and how it is cut.
struct SmiMig {
  unsigned index = 0;
  inventory::NvmlMig mig;
};

// `mig -lgip`, `-lgi` and `-lci`. Where there is nothing to list they say so in a line.
std::string mig_profiles(const std::vector<SmiMig>& gpus);
std::string mig_instances(const std::vector<SmiMig>& gpus);
std::string mig_compute_instances(const std::vector<SmiMig>& gpus);

}  // namespace aliquot::cli
