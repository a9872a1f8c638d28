#include "scheduler/policy_spread.h"

#include <bit>

#include "scheduler/policy_parts.h"

namespace aliquot::scheduler {
namespace {

class Spread final : public Policy {
 public:
  std::string_view name() const override { return "spread"; }
  Choice choose(const NodeView& view, const Demand& demand, const Ask& ask,
                GpuMask fitting) override {
    const int spare = std::popcount(fitting) - ask.count;
    const GpuMask fullest = least_free(view.state, view.shape, fitting, spare);
    return {1000 - fullness(view, demand, &ask), fitting & ~fullest};
  }
  Choice choose_without_gpus(const NodeView& view, const Demand& demand) override {
    return {1000 - fullness(view, demand, nullptr), 0, 0};
  }
};

}  // namespace

std::unique_ptr<Policy> make_spread() { return std::make_unique<Spread>(); }

}  // namespace aliquot::scheduler
