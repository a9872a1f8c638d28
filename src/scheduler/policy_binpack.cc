#include "scheduler/policy_binpack.h"

#include "scheduler/policy_parts.h"

namespace aliquot::scheduler {
namespace {

class Binpack final : public Policy {
 public:
  std::string_view name() const override { return "binpack"; }
  Choice choose(const NodeView& view, const Demand& demand, const Ask& ask,
                GpuMask fitting) override {
    return {fullness(view, demand, &ask), usual_gpus(view, ask, fitting)};
  }
  Choice choose_without_gpus(const NodeView& view, const Demand& demand) override {
    return {fullness(view, demand, nullptr), 0, 0};
  }
};

}  // namespace

std::unique_ptr<Policy> make_binpack() { return std::make_unique<Binpack>(); }

}  // namespace aliquot::scheduler
