// `aliquot share set|get`: the limits of a lease that lives. One thread.
#pragma once

#include "cli/command.h"

namespace aliquot::cli {

void add_share_command(CLI::App& app, Invocation& invocation);

}  // namespace aliquot::cli
