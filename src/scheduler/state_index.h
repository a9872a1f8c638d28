// StateIndex: nodes grouped by the state they are in. A decision looks at each distinct state once,
// so its cost follows the number of states, not of nodes.
//
// States keep their id while the table is not compacted; `generation` tells caches keyed by id when
// that has happened. Not thread-safe: belongs to the loop that owns the snapshot.
#pragma once

#include <cstdint>
#include <limits>
#include <set>
#include <vector>

#include "scheduler/node_state.h"

namespace aliquot::scheduler {

using StateId = std::uint32_t;
using NodeId = std::uint32_t;  // index in the snapshot, and rank: ties go to the lowest

inline constexpr NodeId kNoNode = std::numeric_limits<NodeId>::max();
inline constexpr StateId kNoState = std::numeric_limits<StateId>::max();

class StateIndex {
 public:
  StateIndex() { rebuild(1024); }

  // Puts `node` in `state`, out of `from` (kNoState: it was in none). Answers the new id.
  StateId move(NodeId node, StateId from, const NodeState& state);
  void remove(NodeId node, StateId from);

  const NodeState& state(StateId id) const { return groups_[id].state; }
  const std::set<NodeId>& nodes(StateId id) const { return groups_[id].nodes; }
  // The node of lowest rank in an active state.
  NodeId first(StateId id) const { return first_[id]; }
  // States that at least one node is in, in no meaningful order, with holes (kNoState). A state
  // keeps its slot while it is active, so that caches by slot are dense and stay valid.
  const std::vector<StateId>& active() const { return active_; }
  std::size_t active_count() const { return active_.size() - holes_.size(); }
  std::size_t size() const { return groups_.size(); }

  // Whether inactive states outnumber the active ones enough to be worth forgetting.
  bool wants_compaction() const { return groups_.size() > 4 * active_count() + kSlack; }
  // Forgets inactive states and renumbers the rest; answers old id -> new id (or kNoState).
  std::vector<StateId> compact();
  std::uint64_t generation() const { return generation_; }

 private:
  static constexpr std::size_t kSlack = 100'000;

  struct Group {
    NodeState state;
    std::set<NodeId> nodes;
    std::uint32_t position = 0;  // in active_
  };
  StateId intern(const NodeState& state);
  void rebuild(std::size_t slots);

  std::vector<Group> groups_;
  std::vector<NodeId> first_;
  std::vector<StateId> active_;
  std::vector<std::uint32_t> holes_;
  std::vector<StateId> slots_;  // open addressing, power of two
  std::uint64_t generation_ = 0;
};

}  // namespace aliquot::scheduler
