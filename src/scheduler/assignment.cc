#include "scheduler/assignment.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "scheduler/mig.h"

namespace aliquot::scheduler {
namespace {

using model::GpuKind;

// One call serves demand.asks[at] and the rest; `parts` is as before where it answers false.
class Search {
 public:
  Search(Policy& policy, const NodeShape& shape, const Demand& demand)
      : policy_(policy), shape_(shape), demand_(demand) {}

  bool serve(const NodeState& state, std::size_t at) {
    if (at == demand_.asks.size()) return true;
    const Ask& ask = demand_.asks[at];
    if (ask.kind == GpuKind::kMig) return serve_slices(state, at);
    const GpuMask fitting = fitting_gpus(state, shape_, ask);
    if (std::popcount(fitting) < ask.count) return false;
    const Choice choice = policy_.choose({shape_, state}, demand_, ask, fitting);
    if (choice.gpus == 0) return false;  // none tied as asked
    if (serve_on(state, at, choice.gpus, choice.score)) return true;
    if (ask.count > 1)  // other sets of many are not searched, but for the roomiest
      return serve_on(state, at, roomiest(state, fitting, ask.count), 0);
    for (GpuMask rest = fitting & ~choice.gpus; rest != 0; rest &= rest - 1)
      if (serve_on(state, at, rest & ~(rest - 1), 0)) return true;
    return false;
  }

  Assignment result() && {
    const auto top = static_cast<std::int64_t>(std::numeric_limits<Score>::max());
    return {static_cast<Score>(std::min(score_, top)), 0, std::move(parts_)};
  }

 private:
  bool serve_on(const NodeState& state, std::size_t at, GpuMask gpus, Score score) {
    NodeState after = state;
    take(after, shape_, demand_.asks[at], gpus);
    const std::size_t kept = parts_.size();
    for (GpuMask rest = gpus; rest != 0; rest &= rest - 1)
      parts_.push_back(part_of(demand_.asks[at], shape_, std::countr_zero(rest)));
    score_ += score;
    if (serve(after, at + 1)) return true;
    score_ -= score;
    parts_.resize(kept);
    return false;
  }

  bool serve_slices(const NodeState& state, std::size_t at) {
    const Ask& ask = demand_.asks[at];
    NodeState after = state;
    const std::size_t kept = parts_.size();
    const std::vector<MigSlice> slices = choose_slices({shape_, state}, ask);
    if (slices.empty()) return false;
    int packed = 0;  // slices in use beside ours: fuller GPUs are better
    for (const MigSlice& slice : slices) {
      GpuState& gpu = after.gpus[static_cast<std::size_t>(slice.gpu)];
      packed += std::popcount(gpu.mig_used);
      gpu.mig_used |= slice.mask;
      gpu.idle = false;
      parts_.push_back({slice.gpu, ask.container, 0, 0, false, slice.mask});
    }
    score_ += packed;
    if (serve(after, at + 1)) return true;
    score_ -= packed;
    parts_.resize(kept);
    return false;
  }

  GpuMask roomiest(const NodeState& state, GpuMask fitting, int count) const {
    const int spare = std::popcount(fitting) - count;
    return fitting & ~least_free(state, shape_, fitting, spare);
  }

  Policy& policy_;
  const NodeShape& shape_;
  const Demand& demand_;
  std::int64_t score_ = 0;
  std::vector<model::GpuPart> parts_;
};

}  // namespace

model::GpuPart part_of(const Ask& ask, const NodeShape& shape, int gpu) {
  if (ask.kind == GpuKind::kWhole)
    return {gpu, ask.container, shape.memory_capacity(), shape.cores_capacity(), true, 0};
  return {gpu, ask.container, memory_need(ask, shape), ask.cores_milli, false, 0};
}

std::optional<Assignment> assign(Policy& policy, const NodeView& view, const Demand& demand) {
  if (demand.asks.empty()) {
    const Choice choice = policy.choose_without_gpus(view, demand);
    return Assignment{choice.score, choice.when_rare, {}};
  }
  Search search(policy, view.shape, demand);
  if (!search.serve(view.state, 0)) return std::nullopt;
  return std::move(search).result();
}

}  // namespace aliquot::scheduler
