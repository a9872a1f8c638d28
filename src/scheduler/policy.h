// Policy: how good it would be to place a demand on a node in a given state, and on which of its
// GPUs. One policy per file pair, all listed in policies() - policies.h.
//
// Whether the demand fits at all is decided before (filters.h); a policy only ranks. Scores are
// integers, the highest wins, ties go to the node of lowest rank, never to chance: the published
// gain of FGD vanishes under random ties. A score must depend on nothing but its arguments and what
// the policy was built with: it is computed once for each pair of demand and state.
//
// Called from the scheduler's loop only.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "scheduler/demand.h"
#include "scheduler/node_state.h"
#include "scheduler/snapshot.h"

namespace aliquot::scheduler {

using Score = std::int32_t;  // at least 0

struct NodeView {
  const NodeShape& shape;
  const NodeState& state;
};

struct Choice {
  Score score = 0;
  GpuMask gpus = 0;     // positions in the view, as many as asked; none: not tied as asked
  Score when_rare = 0;  // taken off the score in full for the last node in this state (rare())
};

// The GPUs of a gang on one node, all of them whole.
struct GangSpot {
  NodeView view;
  GpuMask may = 0;        // idle, or held by the gang
  std::vector<int> gpus;  // held by it
};

enum class Selection : std::uint8_t {
  kBestScore,
  kUniform,  // any node that fits, by next_random(): only for the Random policy of studies
};

class Policy {
 public:
  virtual ~Policy() = default;

  virtual std::string_view name() const = 0;
  virtual StateParts reads() const { return {}; }
  virtual Selection selection() const { return Selection::kBestScore; }
  // A number below `bound`, for kUniform.
  virtual std::uint64_t next_random(std::uint64_t /*bound*/) { return 0; }

  // From how few nodes in one state on when_rare counts, growing as they get fewer. 0: never.
  virtual std::uint32_t rare() const { return 0; }

  // `fitting` has at least ask.count bits. For an ask of MIG slices the scheduler chooses the
  // slices itself and this is not called. `demand` is the request that the ask belongs to.
  virtual Choice choose(const NodeView& view, const Demand& demand, const Ask& ask,
                        GpuMask fitting) = 0;
  // Whether gangs of whole GPUs should touch few nodes, and their GPUs be arranged in the end.
  virtual bool arranges_gangs() const { return false; }
  // Puts, for all spots together, others of `may` in the place of `gpus`, as many as there were;
  // those that talk most stand side by side.
  virtual void arrange(std::span<GangSpot> /*gang*/) {}
  // The NICs by which these GPUs leave the node, bit i for NIC i; 0 where the policy does not mind.
  virtual std::uint64_t rails(const NodeShape& /*shape*/, GpuMask /*gpus*/) const { return 0; }

  // For a demand without GPUs.
  virtual Choice choose_without_gpus(const NodeView& view, const Demand& demand) = 0;
};

}  // namespace aliquot::scheduler
