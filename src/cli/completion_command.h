// `aliquot completion bash` and `aliquot man`: made from the parser itself, so they cannot differ
// from what the program takes.
#pragma once

#include "cli/command.h"

namespace aliquot::cli {

void add_completion_command(CLI::App& app, Invocation& invocation);

// A bash script that completes commands and options of `app`.
std::string bash_completion(const CLI::App& app);

// aliquot(1) in man(7) macros: every command with its options.
std::string man_page(const CLI::App& app);

}  // namespace aliquot::cli
