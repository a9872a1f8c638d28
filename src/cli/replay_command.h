// `aliquot replay`: what placement policies would do to the jobs of a trace.
#pragma once

#include "cli/command.h"

namespace aliquot::cli {

void add_replay_command(CLI::App& app, Invocation& invocation);

}  // namespace aliquot::cli
