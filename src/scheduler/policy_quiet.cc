#include "scheduler/policy_quiet.h"

#include <algorithm>
#include <bit>

#include "scheduler/policy_parts.h"

namespace aliquot::scheduler {
namespace {

constexpr int kTenths = 10;

int busy_at(const NodeView& view, int gpu) {
  return view.state.gpus[static_cast<std::size_t>(gpu)].busy;
}

// Least busy first, then least room.
GpuMask quietest(const NodeView& view, GpuMask fitting, int count) {
  GpuMask chosen = 0;
  for (int tenths = 0; tenths <= kTenths && std::popcount(chosen) < count; ++tenths) {
    GpuMask equal = 0;
    for (GpuMask rest = fitting; rest != 0; rest &= rest - 1)
      if (busy_at(view, std::countr_zero(rest)) == tenths) equal |= rest & ~(rest - 1);
    const int wanted = std::min(std::popcount(equal), count - std::popcount(chosen));
    chosen |= least_free(view.state, view.shape, equal, wanted);
  }
  return chosen;
}

class Quiet final : public Policy {
 public:
  std::string_view name() const override { return "quiet"; }
  StateParts reads() const override {
    return {.positions = false, .kinds = false, .measured = true};
  }

  Choice choose(const NodeView& view, const Demand& demand, const Ask& ask,
                GpuMask fitting) override {
    const GpuMask gpus = quietest(view, fitting, ask.count);
    int busiest = 0;
    for (GpuMask rest = gpus; rest != 0; rest &= rest - 1)
      busiest = std::max(busiest, busy_at(view, std::countr_zero(rest)));
    return {static_cast<Score>((kTenths - busiest) << 10) + fullness(view, demand, &ask), gpus, 0};
  }
  Choice choose_without_gpus(const NodeView& view, const Demand& demand) override {
    return {fullness(view, demand, nullptr), 0, 0};
  }
};

}  // namespace

std::unique_ptr<Policy> make_quiet() { return std::make_unique<Quiet>(); }

}  // namespace aliquot::scheduler
