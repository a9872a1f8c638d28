#include "scheduler/policy_rollout.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <string>

#include "scheduler/policy_parts.h"
#include "scheduler/rollout.h"

namespace aliquot::scheduler {
namespace {

// Costs are turned into scores by this, so that a score stays positive.
constexpr std::int64_t kFree = 1 << 28;

class RolloutPolicy final : public Policy {
 public:
  RolloutPolicy(const Workload& workload, const std::vector<ModelCapacity>& capacity,
                const RolloutTuning& tuning)
      : tuning_(tuning), rollout_(workload, tuning) {
    const std::vector<int> load = named_load(workload, capacity);
    for (std::size_t i = 0; i < load.size(); ++i) {
      std::int64_t price = 1000;
      for (int n = 0; n < tuning.scarcity_power; ++n)
        price = price * std::min(load[i], 1000) / 1000;
      prices_[capacity[i].model] = price * tuning.scarcity / 100;
    }
  }

  std::string_view name() const override { return "rollout"; }
  std::uint32_t rare() const override { return static_cast<std::uint32_t>(tuning_.rare_nodes); }

  Choice choose(const NodeView& view, const Demand& demand, const Ask& ask,
                GpuMask fitting) override {
    const ShareState before = share_state_of(view);
    const std::int64_t now = rollout_.idle_left(before, view.shape);
    const int milli = asked_milli(ask, view.shape);
    const bool one_share = ask.kind == model::GpuKind::kShare && ask.count == 1;
    const GpuMask usual = one_share ? fitting : usual_gpus(view, ask, fitting);
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    GpuMask chosen = 0;
    int last_free = -1;
    // A share tries every GPU that differs; others take the usual ones together.
    for (GpuMask rest = usual; rest != 0; rest &= rest - 1) {
      const GpuMask gpus = one_share ? rest & ~(rest - 1) : usual;
      const int free = view.state.free_milli(std::countr_zero(gpus), view.shape);
      if (one_share && free == last_free) continue;
      last_free = free;
      const ShareState after = after_of(before, view, gpus, milli, demand.cpu_milli);
      const std::int64_t rise = rollout_.idle_left(after, view.shape) - now;
      if (rise < least) least = rise, chosen = gpus;
      if (!one_share) break;
    }
    const std::int64_t asked = std::int64_t{milli} * ask.count;
    std::int64_t cost = least / rollout_.sequences();
    cost += asked * price(view) / 1000;
    Choice choice{score(cost), chosen, 0};
    open(choice, before, ask.count);
    return choice;
  }

  Choice choose_without_gpus(const NodeView& view, const Demand& demand) override {
    const ShareState before = share_state_of(view);
    ShareState after = before;
    after.cpu_milli -= static_cast<std::int32_t>(demand.cpu_milli);
    std::int64_t cost =
        (rollout_.idle_left(after, view.shape) - rollout_.idle_left(before, view.shape)) /
        rollout_.sequences();
    Choice choice{score(cost), 0, 0};
    if (before.gpus > 0) open(choice, before, 0);
    return choice;
  }

 private:
  static ShareState after_of(const ShareState& before, const NodeView& view, GpuMask gpus,
                             int milli, std::int64_t cpu_milli) {
    ShareState after = before;
    after.cpu_milli -= static_cast<std::int32_t>(cpu_milli);
    for (; gpus != 0; gpus &= gpus - 1) {
      const auto free =
          static_cast<std::int16_t>(view.state.free_milli(std::countr_zero(gpus), view.shape));
      const auto end = after.free.begin() + after.gpus;
      const auto at = std::lower_bound(after.free.begin(), end, free) - after.free.begin();
      after.take(static_cast<int>(at), milli);
    }
    return after;
  }

  // What it costs to take the first `taken` GPUs of an idle node.
  void open(Choice& choice, const ShareState& before, int taken) const {
    if (before.total() != 1000 * before.gpus) return;
    const int left = before.gpus - taken;
    choice.score -= tuning_.opening * left / 8 / tuning_.step;
    choice.when_rare = tuning_.rare_opening * left / 8 / tuning_.step;
  }

  // Milli for a whole GPU of this model.
  std::int64_t price(const NodeView& view) const {
    const auto found = prices_.find(view.shape.gpu.name);
    return found == prices_.end() ? 0 : found->second;
  }

  Score score(std::int64_t cost) const {
    const std::int64_t half = tuning_.step / 2;
    const std::int64_t steps = (cost + kFree + half) / tuning_.step;
    return static_cast<Score>(2 * kFree / tuning_.step - steps);
  }

  RolloutTuning tuning_;
  std::map<std::string, std::int64_t> prices_;
  Rollout rollout_;
};

}  // namespace

std::unique_ptr<Policy> make_rollout(const Workload& workload,
                                     const std::vector<ModelCapacity>& capacity,
                                     const RolloutTuning& tuning) {
  return std::make_unique<RolloutPolicy>(workload, capacity, tuning);
}

}  // namespace aliquot::scheduler
