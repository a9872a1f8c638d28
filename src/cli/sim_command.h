// `aliquot sim`: simulated machines up, down, listed. One thread.
#pragma once

#include "cli/command.h"

namespace aliquot::cli {

void add_sim_command(CLI::App& app, Invocation& invocation);

}  // namespace aliquot::cli
