// `aliquot top`: the leases, live.
#pragma once

#include "cli/command.h"

namespace aliquot::cli {

void add_top_command(CLI::App& app, Invocation& invocation);

}  // namespace aliquot::cli
