// Filters: why a node cannot take a demand. Each filter is one row of a table in filters.cc; the
// first that fails is the node's reason.
//
// Pure functions; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "scheduler/policy.h"

namespace aliquot::scheduler {

enum class Refusal : std::uint8_t {
  kGpuModel,    // another model
  kFloor,       // below a floor, or not known
  kLatency,     // too far from its users
  kMigProfile,  // has no such profile
  kGpuCount,    // never has so many GPUs (of that mode)
  kGpuSize,     // each GPU is smaller than the ask
  kLinks,       // its GPUs are not tied as asked
  kCpu,
  kGpusBusy,   // enough GPUs, too few free
  kGpuRoom,    // enough GPUs, too few with room for the share
  kMigSlices,  // no room for the slices
  kTogether,   // each container fits alone, all of them do not
  // From here on reasons that depend on the node, not on its state.
  kCordoned,
  kPods,
  kMemory,
  kOutside,  // not among the nodes that were allowed
};

// The first filter of the node's state that refuses. kTogether is never answered here: it takes a
// search (assignment.h).
std::optional<Refusal> refusal(const NodeView& view, const Demand& demand);

// Whether a refusal could end when others leave.
bool may_pass(Refusal refusal);

// What stands on a refused node, in words: "P100 GPUs, V100M32 asked". Nodes with equal words fold.
std::string words(Refusal refusal, const NodeView& view, const Demand& demand);

}  // namespace aliquot::scheduler
