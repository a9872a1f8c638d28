// `aliquot replay --inflation`: the FGD paper's protocol for several policies and seeds. One
// thread.
#pragma once

#include "cli/program.h"
#include "cli/replay_options.h"

namespace aliquot::cli {

Status inflate_trace(const ReplayOptions& options, Invocation& invocation);

}  // namespace aliquot::cli
