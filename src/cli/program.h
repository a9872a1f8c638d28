// The program `aliquot`: its list of commands and how an invocation of it ends. One thread.
#pragma once

#include "cli/command.h"

namespace aliquot::cli {

// Builds the parser with every command in it; for run_program, completion and the man page.
void add_commands(CLI::App& app, Invocation& invocation);

// Parses and runs; returns the exit status. Usage errors are one line and kUsageError.
int run_program(Invocation& invocation);

}  // namespace aliquot::cli
