#include "scheduler/state_index.h"

#include <utility>

namespace aliquot::scheduler {

StateId StateIndex::intern(const NodeState& state) {
  if (2 * groups_.size() >= slots_.size()) rebuild(2 * slots_.size());
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t at = hash_of(state) & mask;; at = (at + 1) & mask) {
    if (slots_[at] == kNoState) {
      slots_[at] = static_cast<StateId>(groups_.size());
      groups_.push_back({state, {}, 0});
      first_.push_back(kNoNode);
      return slots_[at];
    }
    if (groups_[slots_[at]].state == state) return slots_[at];
  }
}

void StateIndex::rebuild(std::size_t slots) {
  slots_.assign(slots, kNoState);
  for (StateId id = 0; id < groups_.size(); ++id) {
    std::size_t at = hash_of(groups_[id].state) & (slots - 1);
    while (slots_[at] != kNoState) at = (at + 1) & (slots - 1);
    slots_[at] = id;
  }
}

StateId StateIndex::move(NodeId node, StateId from, const NodeState& state) {
  if (from != kNoState) remove(node, from);
  const StateId to = intern(state);
  Group& group = groups_[to];
  if (group.nodes.empty()) {
    if (holes_.empty()) {
      group.position = static_cast<std::uint32_t>(active_.size());
      active_.push_back(to);
    } else {
      group.position = holes_.back();
      active_[group.position] = to;
      holes_.pop_back();
    }
  }
  group.nodes.insert(node);
  first_[to] = *group.nodes.begin();
  return to;
}

void StateIndex::remove(NodeId node, StateId from) {
  Group& group = groups_[from];
  group.nodes.erase(node);
  if (!group.nodes.empty()) {
    first_[from] = *group.nodes.begin();
    return;
  }
  first_[from] = kNoNode;
  active_[group.position] = kNoState;
  holes_.push_back(group.position);
}

std::vector<StateId> StateIndex::compact() {
  std::vector<StateId> renamed(groups_.size(), kNoState);
  std::vector<Group> kept;
  kept.reserve(active_count());
  std::erase(active_, kNoState);
  holes_.clear();
  for (StateId& id : active_) {
    const auto now = static_cast<StateId>(kept.size());
    renamed[id] = now;
    kept.push_back(std::move(groups_[id]));
    kept.back().position = now;
    id = now;
  }
  groups_ = std::move(kept);
  first_.resize(groups_.size());
  for (StateId id = 0; id < groups_.size(); ++id) first_[id] = *groups_[id].nodes.begin();
  std::size_t slots = 1024;
  while (slots < 4 * groups_.size()) slots *= 2;
  rebuild(slots);
  ++generation_;
  return renamed;
}

}  // namespace aliquot::scheduler
