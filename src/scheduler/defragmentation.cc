#include "scheduler/defragmentation.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace aliquot::scheduler {
namespace {

// Moves are made in the snapshot as they are found, and unmade at the end.
class Plan {
 public:
  Plan(Scheduler& scheduler, const std::vector<Movable>& movable,
       const DefragmentationLimits& limits)
      : scheduler_(scheduler), limits_(limits), budgets_(limits.budgets) {
    for (const Movable& m : movable)
      if (const auto* found = scheduler.snapshot().find(m.reservation))
        on_node_[static_cast<NodeId>(found->placement.node)].push_back(m);
  }

  DefragmentationPlan make() {
    for (const NodeId node : by_price()) empty(node);
    unmake(0);
    return std::move(plan_);
  }

 private:
  struct Made {
    ReservationId suspended;
    ReservationId target;
    std::string budget;
  };

  Snapshot& snapshot() { return scheduler_.snapshot(); }

  int busy_gpus(NodeId node) {
    const NodeState state = snapshot().state(node);
    int busy = 0;
    for (int i = 0; i < state.gpu_count; ++i)
      busy += state.gpus[static_cast<std::size_t>(i)].idle ? 0 : 1;
    return busy;
  }

  std::int64_t price_of(NodeId node) const {
    std::int64_t sum = 0;
    for (const Movable& m : on_node_.at(node)) sum += m.price;
    return sum;
  }

  // Nodes of which everything may move and at least one GPU is in use; the cheapest for each GPU
  // first, then those with most GPUs, then by rank.
  std::vector<NodeId> by_price() {
    std::vector<NodeId> nodes;
    for (const auto& [node, movables] : on_node_)
      if (static_cast<int>(movables.size()) == snapshot().pods(node) && busy_gpus(node) > 0)
        nodes.push_back(node);
    const auto rank = [&](NodeId node) {
      return std::tuple(price_of(node) / snapshot().spec(node).gpu_count,
                        -snapshot().spec(node).gpu_count, node);
    };
    std::sort(nodes.begin(), nodes.end(), [&](NodeId a, NodeId b) { return rank(a) < rank(b); });
    return nodes;
  }

  // Nodes that run something, without `node` itself and those emptied already.
  std::vector<NodeId> targets(NodeId node) {
    std::vector<NodeId> found;
    for (NodeId other = 0; other < snapshot().size(); ++other)
      if (other != node && snapshot().pods(other) > 0) found.push_back(other);
    return found;
  }

  bool affordable(NodeId node) const {
    const std::vector<Movable>& all = on_node_.at(node);
    if (plan_.moves.size() + all.size() > limits_.most_moves) return false;
    std::map<std::string, int> left = budgets_;
    for (const Movable& m : all)
      if (!m.budget.empty() && --left[m.budget] < 0) return false;
    return true;
  }

  void empty(NodeId node) {
    // What was moved here for another node must stay: the node is a target now.
    if (!affordable(node) || static_cast<int>(on_node_[node].size()) != snapshot().pods(node))
      return;
    const int gained = busy_gpus(node);
    const std::int64_t price = price_of(node);
    if (limits_.most_price_per_gpu >= 0 && price > limits_.most_price_per_gpu * gained) return;
    const std::vector<NodeId> where = targets(node);
    const std::size_t kept = made_.size();
    for (const Movable& m : on_node_[node]) {
      snapshot().suspend(m.reservation);
      const Decision d = scheduler_.place(m.demand, where);
      if (d.outcome != Outcome::kPlaced) {
        snapshot().resume(m.reservation);
        unmake(kept);
        return;
      }
      made_.push_back({m.reservation, d.reservation, m.budget});
      plan_.moves.push_back(
          {m.reservation, snapshot().find(m.reservation)->placement, d.placement});
      if (!m.budget.empty()) --budgets_[m.budget];
    }
    plan_.emptied.push_back(node);
    plan_.gpus_gained += gained;
    plan_.price += price;
  }

  // Takes back all moves but the first `kept`. At the very end the plan itself stays.
  void unmake(std::size_t kept) {
    const bool abandoned = kept > 0 || plan_.emptied.empty();
    while (made_.size() > kept) {
      const Made& last = made_.back();
      (void)snapshot().release(last.target);
      snapshot().resume(last.suspended);
      if (!last.budget.empty()) ++budgets_[last.budget];
      if (abandoned) plan_.moves.pop_back();
      made_.pop_back();
    }
  }

  Scheduler& scheduler_;
  const DefragmentationLimits& limits_;
  std::map<std::string, int> budgets_;
  std::map<NodeId, std::vector<Movable>> on_node_;
  std::vector<Made> made_;
  DefragmentationPlan plan_;
};

}  // namespace

DefragmentationPlan plan_defragmentation(Scheduler& scheduler, const std::vector<Movable>& movable,
                                         const DefragmentationLimits& limits) {
  return Plan(scheduler, movable, limits).make();
}

}  // namespace aliquot::scheduler
