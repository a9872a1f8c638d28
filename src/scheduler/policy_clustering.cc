#include "scheduler/policy_clustering.h"

#include <algorithm>

#include "scheduler/policy_parts.h"

namespace aliquot::scheduler {
namespace {

class Clustering final : public Policy {
 public:
  std::string_view name() const override { return "clustering"; }
  StateParts reads() const override { return {.positions = false, .kinds = true}; }
  Choice choose(const NodeView& view, const Demand& demand, const Ask& ask,
                GpuMask fitting) override {
    const auto own = static_cast<unsigned>(1u << static_cast<unsigned>(demand.kind()));
    const unsigned kinds = view.state.kinds;
    const int like = kinds == own ? 75 : (kinds & own) != 0 ? 50 : kinds == 0 ? 25 : 0;
    const int full = std::max(0, 25 * (8'000 - free_milli(view)) / 8'000);
    return {like + full, usual_gpus(view, ask, fitting)};
  }
  Choice choose_without_gpus(const NodeView& /*view*/, const Demand& /*demand*/) override {
    return {0, 0, 0};
  }
};

}  // namespace

std::unique_ptr<Policy> make_clustering() { return std::make_unique<Clustering>(); }

}  // namespace aliquot::scheduler
