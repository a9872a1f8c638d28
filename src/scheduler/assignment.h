// Assignment: which GPUs of one node serve each ask of a demand, and the policy's score of that.
//
// Pure apart from what the policy caches; the scheduler's loop only.
#pragma once

#include <optional>
#include <vector>

#include "scheduler/policy.h"

namespace aliquot::scheduler {

struct Assignment {
  Score score = 0;
  Score when_rare = 0;
  std::vector<model::GpuPart> parts;  // GpuPart::gpu is the position in the view
};

// Asks are served hardest first, each by the policy's choice; where a later one then finds no room,
// the other GPUs are tried for the earlier ones. Precondition: refusal() found nothing.
std::optional<Assignment> assign(Policy& policy, const NodeView& view, const Demand& demand);

// The part of one GPU that a unit of `ask` holds (not for MIG slices).
model::GpuPart part_of(const Ask& ask, const NodeShape& shape, int gpu);

}  // namespace aliquot::scheduler
