#include "scheduler/policy_fgd.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <utility>

#include "scheduler/fragmentation.h"
#include "scheduler/policy_parts.h"

namespace aliquot::scheduler {
namespace {

class Fgd final : public Policy {
 public:
  explicit Fgd(Workload workload) : fragmentation_(std::move(workload)) {
    // floor(100 * sigmoid(x / 1000)) reaches s where x = 1000 ln(s / (100 - s)). Kept as integers
    // in the unit of Fragmentation, so that decisions need no floating point.
    for (std::size_t s = 1; s < 100; ++s) {
      const double x = 1000.0 * std::log(static_cast<double>(s) / static_cast<double>(100 - s));
      steps_[s - 1] =
          static_cast<std::int64_t>(std::ceil(x * static_cast<double>(fragmentation_.total())));
    }
  }

  std::string_view name() const override { return "fgd"; }

  Choice choose(const NodeView& view, const Demand& demand, const Ask& ask,
                GpuMask fitting) override {
    const ShareState before = share_state_of(view);
    const std::int64_t now = fragmentation_.of(before, view.shape);
    const int milli = asked_milli(ask, view.shape);
    if (ask.kind == model::GpuKind::kShare && ask.count == 1)
      return choose_one(view, demand, milli, fitting, {before, now});
    const GpuMask gpus = usual_gpus(view, ask, fitting);
    ShareState after = before;
    after.cpu_milli -= static_cast<std::int32_t>(demand.cpu_milli);
    for (GpuMask rest = gpus; rest != 0; rest &= rest - 1)
      after.take(place_of(after, view.state.free_milli(std::countr_zero(rest), view.shape)), milli);
    return {score(now - fragmentation_.of(after, view.shape)), gpus};
  }

  Choice choose_without_gpus(const NodeView& view, const Demand& demand) override {
    ShareState state = share_state_of(view);
    const std::int64_t now = fragmentation_.of(state, view.shape);
    state.cpu_milli -= static_cast<std::int32_t>(demand.cpu_milli);
    return {score(now - fragmentation_.of(state, view.shape)), 0, 0};
  }

 private:
  struct Before {
    const ShareState& state;
    std::int64_t fragmentation;
  };

  Choice choose_one(const NodeView& view, const Demand& demand, int milli, GpuMask fitting,
                    const Before& before) {
    Choice best{-1, 0};
    int last_free = -1;
    for (; fitting != 0; fitting &= fitting - 1) {
      const int i = std::countr_zero(fitting);
      const int free = view.state.free_milli(i, view.shape);
      if (free == last_free) continue;  // equal GPUs score alike
      last_free = free;
      ShareState after = before.state;
      after.cpu_milli -= static_cast<std::int32_t>(demand.cpu_milli);
      after.take(place_of(after, free), milli);
      const Score s = score(before.fragmentation - fragmentation_.of(after, view.shape));
      if (s > best.score) best = {s, GpuMask{1} << i};
    }
    return best;
  }

  static int place_of(const ShareState& state, int free) {
    return static_cast<int>(std::lower_bound(state.free.begin(), state.free.begin() + state.gpus,
                                             static_cast<std::int16_t>(free)) -
                            state.free.begin());
  }

  Score score(std::int64_t fall) const {
    return static_cast<Score>(std::upper_bound(steps_.begin(), steps_.end(), fall) -
                              steps_.begin());
  }

  Fragmentation fragmentation_;
  std::array<std::int64_t, 99> steps_{};  // the fall from which the score is at least i + 1
};

}  // namespace

std::unique_ptr<Policy> make_fgd(Workload workload) {
  return std::make_unique<Fgd>(std::move(workload));
}

}  // namespace aliquot::scheduler
