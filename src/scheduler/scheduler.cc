#include "scheduler/scheduler.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <numeric>
#include <utility>

#include "scheduler/assignment.h"

namespace aliquot::scheduler {

Scheduler::Scheduler(std::vector<model::NodeSpec> nodes, std::unique_ptr<Policy> policy,
                     std::size_t most_remembered)
    : policy_(std::move(policy)),
      snapshot_(std::move(nodes), policy_->reads()),
      most_remembered_(most_remembered) {}

Result<ClassId> Scheduler::classify(const model::Request& request) {
  const Result<Demand> demand = demand_of(request);
  if (!demand) return demand.error();
  return class_of(*demand);
}

ClassId Scheduler::class_of(const Demand& demand) {
  const std::size_t hash = hash_of(demand);
  const auto [from, to] = by_hash_.equal_range(hash);
  for (auto it = from; it != to; ++it)
    if (classes_[it->second].demand == demand) return it->second;
  const auto id = static_cast<ClassId>(classes_.size());
  classes_.emplace_back().demand = demand;
  by_hash_.emplace(hash, id);
  return id;
}

Result<Decision> Scheduler::place(const model::Request& request) {
  const Result<ClassId> id = classify(request);
  if (!id) return id.error();
  return place(*id);
}

Decision Scheduler::place(ClassId id) {
  Class& c = classes_[id];
  refresh(c);
  const Best best =
      policy_->selection() == Selection::kUniform ? uniform(c, {}, true) : best_of_all(c);
  return best.node == kNoNode ? refuse(c) : reserve(c, best);
}

Decision Scheduler::place(ClassId id, std::span<const NodeId> within) {
  Class& c = classes_[id];
  refresh(c);
  const Best best = policy_->selection() == Selection::kUniform ? uniform(c, within, false)
                                                                : best_within(c, within);
  return best.node == kNoNode ? refuse(c) : reserve(c, best);
}

// States may have been renumbered, and new ones may have come.
void Scheduler::refresh(Class& c) {
  if (c.generation != snapshot_.index().generation()) {
    c.generation = snapshot_.index().generation();
    c.memo.clear();
    c.seen.clear();
  }
  if (c.memo.size() >= snapshot_.index().size()) return;
  const std::size_t wanted = snapshot_.index().size() + snapshot_.index().size() / 2;
  const std::size_t before = c.memo.capacity();
  // Requests that are never asked twice would fill the memory with scores for nobody.
  if (wanted > before && remembered_ - before + wanted > most_remembered_)
    for (Class& other : classes_)
      if (&other != &c) forget(other);
  c.memo.resize(wanted);
  remembered_ += c.memo.capacity() - before;
}

// Gives the memory back, which clear() would keep.
void Scheduler::forget(Class& c) {
  remembered_ -= c.memo.capacity();
  std::vector<Entry>().swap(c.memo);
  std::vector<StateId>().swap(c.seen);
  std::vector<Score>().swap(c.dense);
}

const Scheduler::Entry& Scheduler::entry(Class& c, StateId state) {
  Entry& entry = c.memo[state];
  if (entry.score == kUnknown) {
    const NodeState& now = snapshot_.index().state(state);
    entry = evaluate(c, {snapshot_.shape(now.shape), now});
  }
  return entry;
}

Score Scheduler::less_rare(const Entry& entry, StateId state) const {
  if (entry.when_rare == 0) return entry.score;
  const auto rare = static_cast<std::int64_t>(policy_->rare());
  const auto nodes = static_cast<std::int64_t>(snapshot_.index().nodes(state).size());
  const std::int64_t off = nodes >= rare ? 0 : entry.when_rare * (rare - nodes) / rare;
  return static_cast<Score>(std::max<std::int64_t>(0, entry.score - off));
}

Scheduler::Entry Scheduler::evaluate(const Class& c, const NodeView& view) {
  if (refusal(view, c.demand)) return {kRefused, 0, 0};
  if (c.demand.asks.size() == 1 && c.demand.asks.front().kind != model::GpuKind::kMig) {
    const Ask& ask = c.demand.asks.front();
    const Choice choice =
        policy_->choose(view, c.demand, ask, fitting_gpus(view.state, view.shape, ask));
    return choice.gpus == 0 ? Entry{kRefused, 0, 0}
                            : Entry{choice.score, choice.gpus, choice.when_rare};
  }
  const std::optional<Assignment> found = assign(*policy_, view, c.demand);
  return {found ? found->score : kRefused, 0, found ? found->when_rare : 0};
}

NodeId Scheduler::first_open(StateId state, Bytes memory) const {
  const NodeId first = snapshot_.index().first(state);
  if (snapshot_.open(first, memory)) return first;
  for (const NodeId node : snapshot_.index().nodes(state))
    if (snapshot_.open(node, memory)) return node;
  return kNoNode;
}

Scheduler::Best Scheduler::best_of_all(Class& c) {
  Best best;
  const StateIndex& index = snapshot_.index();
  const std::vector<StateId>& active = index.active();
  c.seen.resize(active.size(), kNoState);
  c.dense.resize(active.size(), kRefused);
  for (std::size_t slot = 0; slot < active.size(); ++slot) {
    const StateId state = active[slot];
    if (c.seen[slot] != state) {
      c.seen[slot] = state;
      c.dense[slot] = state == kNoState ? kRefused : entry(c, state).score;
    }
    Score now = c.dense[slot];
    if (now < best.score || now < 0) continue;
    now = less_rare(c.memo[state], state);
    if (now < best.score || (now == best.score && index.first(state) > best.node)) continue;
    const NodeId node = first_open(state, c.demand.memory_bytes);
    if (node == kNoNode || (now == best.score && node > best.node)) continue;
    best = {node, now};
  }
  return best;
}

Scheduler::Best Scheduler::best_within(Class& c, std::span<const NodeId> within) {
  Best best;
  for (const NodeId node : within) {
    const Score now = score(c, snapshot_.state_id(node));
    if (now < best.score || now < 0 || (now == best.score && node > best.node)) continue;
    if (snapshot_.open(node, c.demand.memory_bytes)) best = {node, now};
  }
  return best;
}

Scheduler::Best Scheduler::uniform(Class& c, std::span<const NodeId> within, bool everywhere) {
  std::vector<NodeId> fitting;
  const auto consider = [&](NodeId node) {
    if (score(c, snapshot_.state_id(node)) >= 0 && snapshot_.open(node, c.demand.memory_bytes))
      fitting.push_back(node);
  };
  if (everywhere)
    for (NodeId node = 0; node < snapshot_.size(); ++node) consider(node);
  else
    std::for_each(within.begin(), within.end(), consider);
  if (fitting.empty()) return {};
  return {fitting[policy_->next_random(fitting.size())], 0};
}

Decision Scheduler::reserve(Class& c, const Best& best) {
  const StateId state = snapshot_.state_id(best.node);
  const NodeState& now = snapshot_.index().state(state);
  const NodeView view{snapshot_.shape(now.shape), now};
  const auto position = snapshot_.positions(best.node);
  Decision decision{Outcome::kPlaced, best.score, 0, {}};
  model::Placement& placement = decision.placement;
  placement = {static_cast<int>(best.node),
               c.demand.cpu_milli,
               c.demand.memory_bytes,
               static_cast<std::uint8_t>(c.demand.kind()),
               {}};
  const GpuMask gpus = c.memo[state].gpus;
  if (policy_->selection() == Selection::kUniform || (gpus == 0 && !c.demand.asks.empty())) {
    std::optional<Assignment> found = assign(*policy_, view, c.demand);
    if (!found) return refuse(c);  // a random choice for one container left no room for the next
    placement.gpus = std::move(found->parts);
  } else {
    for (GpuMask rest = gpus; rest != 0; rest &= rest - 1)
      placement.gpus.push_back(part_of(c.demand.asks.front(), view.shape, std::countr_zero(rest)));
  }
  for (model::GpuPart& part : placement.gpus)
    part.gpu = position[static_cast<std::size_t>(part.gpu)];
  const Result<ReservationId> reserved = snapshot_.reserve(placement);
  assert(reserved);  // the state said that it fits
  decision.reservation = *reserved;
  return decision;
}

Decision Scheduler::refuse(Class& c) {
  if (!c.ever || c.shapes_seen != snapshot_.shapes()) {
    c.ever = ever_fits(c.demand);
    c.shapes_seen = snapshot_.shapes();
  }
  return {*c.ever ? Outcome::kNotNow : Outcome::kNever, 0, 0, {}};
}

bool Scheduler::ever_fits(const Demand& demand) const {
  std::vector<bool> fits(snapshot_.shapes());
  for (std::uint32_t id = 0; id < snapshot_.shapes(); ++id) {
    const NodeShape& shape = snapshot_.shape(id);
    const NodeState empty = empty_state(shape, id);
    fits[id] = !refusal({shape, empty}, demand) && assign(*policy_, {shape, empty}, demand);
  }
  for (NodeId node = 0; node < snapshot_.size(); ++node)
    if (fits[snapshot_.shape_id(node)] && snapshot_.spec(node).memory_bytes >= demand.memory_bytes)
      return true;
  return false;
}

}  // namespace aliquot::scheduler
