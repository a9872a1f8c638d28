// `aliquot smi topo -m`, `nvlink --status` and `mig -lgip|-lgi|-lci`, as nvidia-smi has them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/smi_source.h"

namespace aliquot::cli {

// Adds topo, nvlink and mig to the command `smi`. `source` answers whom to ask.
void add_smi_parts(CLI::App& smi, Invocation& invocation,
                   const std::function<Result<SmiSource>()>& source);

// nvidia-smi's options of several letters after one dash, which CLI11 takes for several options,
// become their long forms. Other words stay.
void spell_out_smi_words(std::vector<std::string>& arguments);

}  // namespace aliquot::cli
