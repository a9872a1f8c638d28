// `aliquot bench shares`: cells of the share matrix on a GPU, as JSON or a table.
// One thread.
#pragma once

#include "cli/command.h"

namespace aliquot::cli {

void add_bench_command(CLI::App& app, Invocation& invocation);

}  // namespace aliquot::cli
