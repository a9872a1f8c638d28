// `aliquot abi`: which entry points of the CUDA driver and NVML are passed, guarded, denied. One
// thread.
#pragma once

#include "cli/command.h"

namespace aliquot::cli {

void add_abi_command(CLI::App& app, Invocation& invocation);

}  // namespace aliquot::cli
