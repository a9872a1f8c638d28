// The GPU that is least busy as measured (Snapshot::set_measured_compute), then the fullest node:
// for shares without a guarantee, whose promise says little of what they do. The scheduler's loop
// only.
#pragma once

#include <memory>

#include "scheduler/policy.h"

namespace aliquot::scheduler {

std::unique_ptr<Policy> make_quiet();

}  // namespace aliquot::scheduler
