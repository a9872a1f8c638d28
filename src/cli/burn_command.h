// `aliquot burn`: a load for trying shares; prints JSON. One thread.
#pragma once

#include "cli/command.h"

namespace aliquot::cli {

void add_burn_command(CLI::App& app, Invocation& invocation);

}  // namespace aliquot::cli
