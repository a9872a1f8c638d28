// `aliquot smi`: the GPUs as NVML shows them; inside a lease, the share. One thread.
#pragma once

#include "cli/command.h"

namespace aliquot::cli {

void add_smi_command(CLI::App& app, Invocation& invocation);

}  // namespace aliquot::cli
