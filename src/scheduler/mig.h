// MIG slices: which start positions are legal on a GPU in MIG mode, and which one keeps most open.
//
// Pure functions; any thread.
#pragma once

#include <string_view>
#include <vector>

#include "scheduler/policy.h"

namespace aliquot::scheduler {

struct MigSlice {
  int gpu = 0;  // position in the view
  std::uint8_t mask = 0;
};

// Null where the shape has no profile of exactly this name.
const model::MigProfile* mig_profile(const NodeShape& shape, std::string_view name);

// Slices for all units of `ask`, or none where they do not all fit. Each goes to the fullest GPU
// that takes it, and there to the start that leaves most placements legal.
std::vector<MigSlice> choose_slices(const NodeView& view, const Ask& ask);

}  // namespace aliquot::scheduler
