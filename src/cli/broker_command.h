// `aliquot broker`: the process that keeps this user's leases. Started by `aliquot run`; people
// need it only to end it. One thread.
#pragma once

#include "cli/command.h"

namespace aliquot::cli {

void add_broker_command(CLI::App& app, Invocation& invocation);

}  // namespace aliquot::cli
