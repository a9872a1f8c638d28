// `aliquot sim fault`: breaks and mends parts of a simulated machine. One thread.
#pragma once

#include "cli/command.h"

namespace aliquot::cli {

// Adds itself below `aliquot sim`.
void add_sim_fault(CLI::App& sim, Invocation& invocation);

}  // namespace aliquot::cli
