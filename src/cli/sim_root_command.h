// `aliquot sim root`: the files of an installed driver, laid out in a directory.
#pragma once

#include "cli/command.h"

namespace aliquot::cli {

// Adds `root` to the command `sim`.
void add_sim_root(CLI::App& sim, Invocation& invocation);

}  // namespace aliquot::cli
