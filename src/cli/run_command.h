// `aliquot run`: a command in its share of one or more GPUs. One thread.
//
// Stays as the command's parent: passes signals and the exit status on, starts the next broker when
// one ends, and reports processes of the run that use a GPU without having attached.
#pragma once

#include "cli/command.h"

namespace aliquot::cli {

void add_run_command(CLI::App& app, Invocation& invocation);

}  // namespace aliquot::cli
