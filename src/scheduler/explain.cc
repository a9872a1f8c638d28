// Scheduler::explain: the slow, wordy twin of a refusal.
#include <algorithm>
#include <bit>
#include <map>
#include <numeric>

#include "scheduler/assignment.h"
#include "scheduler/scheduler.h"

namespace aliquot::scheduler {
namespace {

struct Shortage {
  int gpus = 0;
  std::int64_t cpu = 0;
  Bytes memory = 0;
  auto operator<=>(const Shortage&) const = default;
};

// What the node lacks: GPUs first, because they free up last.
Shortage shortage(const NodeView& view, const Demand& demand, Bytes free_memory) {
  Shortage s;
  for (const Ask& ask : demand.asks) {
    const int fitting = ask.kind == model::GpuKind::kMig
                            ? 0
                            : std::popcount(fitting_gpus(view.state, view.shape, ask));
    s.gpus += std::max(0, ask.count - fitting);
  }
  s.cpu = std::max<std::int64_t>(0, demand.cpu_milli - view.state.cpu_milli);
  s.memory = std::max<Bytes>(0, demand.memory_bytes - free_memory);
  return s;
}

}  // namespace

std::string Explanation::text() const {
  std::string all = outcome == Outcome::kPlaced   ? "fits now"
                    : outcome == Outcome::kNotNow ? "not now"
                                                  : "never";
  for (std::size_t i = 0; i < reasons.size(); ++i)
    all += (i == 0 ? ": " : "; ") + std::to_string(reasons[i].nodes) +
           (reasons[i].nodes == 1 ? " node: " : " nodes: ") + reasons[i].words;
  if (!would_help.empty()) all += "; would help: " + would_help;
  return all;
}

std::optional<Refusal> Scheduler::node_refusal(NodeId node, const Demand& demand) const {
  const NodeState& now = snapshot_.index().state(snapshot_.state_id(node));
  const NodeView view{snapshot_.shape(now.shape), now};
  if (const auto by_state = refusal(view, demand)) return by_state;
  if (snapshot_.spec(node).cordoned) return Refusal::kCordoned;
  if (snapshot_.pods(node) >= snapshot_.spec(node).max_pods) return Refusal::kPods;
  if (snapshot_.free_memory(node) < demand.memory_bytes) return Refusal::kMemory;
  if (assign(*policy_, view, demand)) return std::nullopt;
  return demand.links == model::LinkNeed::kAny ? Refusal::kTogether : Refusal::kLinks;
}

std::string Scheduler::would_help(const Demand& demand, std::span<const NodeId> within) const {
  std::optional<std::pair<Shortage, NodeId>> least;
  for (const NodeId node : within) {
    const std::uint32_t shape_id = snapshot_.shape_id(node);
    const NodeShape& shape = snapshot_.shape(shape_id);
    const NodeState empty = empty_state(shape, shape_id);
    if (refusal({shape, empty}, demand) || snapshot_.spec(node).memory_bytes < demand.memory_bytes)
      continue;
    const NodeState& now = snapshot_.index().state(snapshot_.state_id(node));
    const std::pair found{shortage({shape, now}, demand, snapshot_.free_memory(node)), node};
    if (!snapshot_.spec(node).cordoned && (!least || found < *least)) least = found;
  }
  if (!least) return {};
  const auto& [s, node] = *least;
  std::string what;
  const auto add = [&](std::int64_t amount, const std::string& unit) {
    if (amount > 0) what += (what.empty() ? "" : " and ") + std::to_string(amount) + " " + unit;
  };
  add(s.gpus, s.gpus == 1 ? "more GPU" : "more GPUs");
  add(s.cpu, "milli CPU");
  add(s.memory, "bytes of memory");
  if (what.empty()) what = "a pod slot or another set of GPUs";
  return what + " on " + snapshot_.spec(node).name;
}

Explanation Scheduler::explain(ClassId id) const {
  std::vector<NodeId> all(snapshot_.size());
  std::iota(all.begin(), all.end(), NodeId{0});
  return explain(id, all);
}

Explanation Scheduler::explain(ClassId id, std::span<const NodeId> within) const {
  const Demand& demand = classes_[id].demand;
  Explanation answer;
  std::map<std::pair<Refusal, std::string>, std::size_t> folded;
  for (const NodeId node : within) {
    const std::optional<Refusal> why = node_refusal(node, demand);
    if (!why) {
      answer.outcome = Outcome::kPlaced;
      continue;
    }
    const NodeState& now = snapshot_.index().state(snapshot_.state_id(node));
    ++folded[{*why, words(*why, {snapshot_.shape(now.shape), now}, demand)}];
  }
  for (const auto& [key, nodes] : folded) answer.reasons.push_back({key.first, key.second, nodes});
  std::stable_sort(answer.reasons.begin(), answer.reasons.end(),
                   [](const FoldedReason& a, const FoldedReason& b) { return a.nodes > b.nodes; });
  if (answer.outcome == Outcome::kPlaced || !ever_fits(demand)) return answer;
  answer.outcome = Outcome::kNotNow;
  answer.would_help = would_help(demand, within);
  return answer;
}

}  // namespace aliquot::scheduler
