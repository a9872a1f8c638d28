// `aliquot gpu set|get`: how the GPUs of a machine are shared.
#pragma once

#include "cli/command.h"

namespace aliquot::cli {

void add_gpu_command(CLI::App& app, Invocation& invocation);

}  // namespace aliquot::cli
