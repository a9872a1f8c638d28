// What several policies compute alike.
//
// Pure functions; any thread.
#pragma once

#include "scheduler/policy.h"

namespace aliquot::scheduler {

// 1/1000 GPU free on the node, by the scarcer of compute and memory.
int free_milli(const NodeView& view);

// The part of each GPU that `ask` takes, by the larger of compute and memory: 1..1000.
int asked_milli(const Ask& ask, const NodeShape& shape);

// Whole GPUs: the first ones. Shares: the GPUs with least room that still fit.
GpuMask usual_gpus(const NodeView& view, const Ask& ask, GpuMask fitting);

// How full the node would be, 0..1000 each: the mean of CPU, GPU compute and GPU memory that would
// be taken.
Score fullness(const NodeView& view, const Demand& demand, const Ask* ask);

}  // namespace aliquot::scheduler
