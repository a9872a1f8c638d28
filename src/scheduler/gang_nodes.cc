#include "scheduler/gang_nodes.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <utility>

namespace aliquot::scheduler {
namespace {

// What `count` equal members ask of one node together.
Demand sum_of(const Demand& one, int count) {
  Demand sum = one;
  sum.cpu_milli *= count;
  sum.memory_bytes *= count;
  sum.asks = {one.asks.front()};
  sum.asks.front().count = one.gpus() * count;
  return sum;
}

class Gatherer {
 public:
  Gatherer(Scheduler& scheduler, std::span<const GangUnit> units, std::size_t done,
           std::span<const NodeId> within, std::vector<Decision>& placed)
      : scheduler_(scheduler), units_(units), within_(within), placed_(placed), done_(done) {
    for (const GangUnit& unit : units) all_ += scheduler.demand(unit.demand).gpus();
  }

  std::size_t on_few() {
    while (done_ < units_.size() && gpus_of_next() > 0) {
      std::size_t count = most_on_a_node();
      while (count > 0 && !put(count)) --count;
      if (count == 0) break;
    }
    return done_;
  }

  std::size_t on_one() {
    const std::size_t count = most_on_a_node();
    return static_cast<int>(count) * gpus_of_next() == all_ && put(count) ? count : 0;
  }

 private:
  int gpus_of_next() const { return scheduler_.demand(units_[done_].demand).gpus(); }

  // Of the next units, as far as they ask the same.
  std::size_t most_on_a_node() const {
    const auto most = static_cast<std::size_t>(model::kMaxGpusPerNode / gpus_of_next());
    std::size_t count = 0;
    while (count < most && done_ + count < units_.size() &&
           units_[done_ + count].demand == units_[done_].demand)
      ++count;
    return count;
  }

  // The next `count` units on the node that suits their sum best.
  bool put(std::size_t count) {
    const Demand one = scheduler_.demand(units_[done_].demand);
    Demand sum = sum_of(one, static_cast<int>(count));
    sum.over_nodes = sum.gpus() < all_;
    sum.peer_rails = peer_rails_;
    const Decision found = scheduler_.place(scheduler_.class_of(sum), within_);
    if (found.outcome != Outcome::kPlaced) return false;
    if (!scheduler_.snapshot().release(found.reservation)) std::abort();  // just reserved
    const auto node = static_cast<NodeId>(found.placement.node);
    if (!put_on(node, count)) return false;
    GpuMask gpus = 0;
    for (const model::GpuPart& part : found.placement.gpus) gpus |= GpuMask{1} << part.gpu;
    peer_rails_ = scheduler_.policy().rails(
        scheduler_.snapshot().shape(scheduler_.snapshot().shape_id(node)), gpus);
    done_ += count;
    return true;
  }

  // Each of them, or none where the node has no pod slots left.
  bool put_on(NodeId node, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      Decision& d = placed_[units_[done_ + i].member];
      d = scheduler_.place(units_[done_ + i].demand, std::span(&node, 1));
      if (d.outcome == Outcome::kPlaced) continue;
      for (std::size_t back = 0; back <= i; ++back) {
        Decision& taken = placed_[units_[done_ + back].member];
        if (taken.reservation != 0 && !scheduler_.snapshot().release(taken.reservation))
          std::abort();  // just reserved
        taken = {};
      }
      return false;
    }
    return true;
  }

  Scheduler& scheduler_;
  std::span<const GangUnit> units_;
  std::span<const NodeId> within_;
  std::vector<Decision>& placed_;
  std::size_t done_;
  int all_ = 0;
  std::uint64_t peer_rails_ = 0;
};

}  // namespace

bool is_gatherable(const Scheduler& scheduler, std::span<const GangUnit> units) {
  return std::ranges::all_of(units, [&](const GangUnit& unit) {
    const Demand& demand = scheduler.demand(unit.demand);
    return demand.links == model::LinkNeed::kAny &&
           std::ranges::all_of(demand.asks,
                               [](const Ask& ask) { return ask.kind == model::GpuKind::kWhole; });
  });
}

std::size_t gather(Scheduler& scheduler, std::span<const GangUnit> units, std::size_t done,
                   std::span<const NodeId> within, std::vector<Decision>& placed) {
  return Gatherer(scheduler, units, done, within, placed).on_few();
}

std::size_t gather_on_one(Scheduler& scheduler, std::span<const GangUnit> units,
                          std::span<const NodeId> within, std::vector<Decision>& placed) {
  if (scheduler.demand(units.front().demand).gpus() == 0) return 0;
  return Gatherer(scheduler, units, 0, within, placed).on_one();
}

void arrange(Scheduler& scheduler, std::vector<Decision>& placed) {
  Snapshot& snapshot = scheduler.snapshot();
  std::map<NodeId, std::size_t> spot_of;
  std::vector<GangSpot> spots;
  for (const Decision& d : placed) {
    if (d.placement.gpus.empty()) continue;
    const auto node = static_cast<NodeId>(d.placement.node);
    const auto [found, is_new] = spot_of.try_emplace(node, spots.size());
    if (is_new) {
      const NodeState& state = snapshot.index().state(snapshot.state_id(node));
      const NodeView view{snapshot.shape(state.shape), state};
      const Ask whole{.kind = model::GpuKind::kWhole, .mig_profile = {}};
      spots.push_back({view, fitting_gpus(state, view.shape, whole), {}});
    }
    for (const model::GpuPart& part : d.placement.gpus) {
      spots[found->second].gpus.push_back(part.gpu);
      spots[found->second].may |= GpuMask{1} << part.gpu;
    }
  }
  scheduler.policy().arrange(spots);
  // All go before any comes back: they may swap GPUs.
  for (const Decision& d : placed)
    if (!snapshot.release(d.reservation)) std::abort();
  std::vector<std::size_t> next(spots.size(), 0);
  for (Decision& d : placed) {
    for (model::GpuPart& part : d.placement.gpus) {
      const std::size_t spot = spot_of.at(static_cast<NodeId>(d.placement.node));
      part.gpu = spots[spot].gpus[next[spot]++];
    }
    const Result<ReservationId> again = snapshot.reserve(d.placement);
    if (!again) std::abort();  // as many whole GPUs of the same nodes
    d.reservation = *again;
  }
}

}  // namespace aliquot::scheduler
