#include "scheduler/policy_packing.h"

#include <algorithm>

#include "scheduler/policy_parts.h"

namespace aliquot::scheduler {
namespace {

class Packing final : public Policy {
 public:
  std::string_view name() const override { return "packing"; }
  Choice choose(const NodeView& view, const Demand& /*demand*/, const Ask& ask,
                GpuMask fitting) override {
    const GpuMask gpus = usual_gpus(view, ask, fitting);
    int idle = 0;       // on the node
    int idle_used = 0;  // of those chosen
    int free = 0;       // of those chosen, milli
    for (int i = 0; i < view.state.gpu_count; ++i) {
      const bool is_idle = view.state.gpus[static_cast<std::size_t>(i)].idle;
      idle += is_idle ? 1 : 0;
      if ((gpus >> i & 1) == 0) continue;
      idle_used += is_idle ? 1 : 0;
      free += view.state.free_milli(i, view.shape);
    }
    if (idle == view.state.gpu_count) return {std::max(33 - idle, idle), gpus};
    if (idle_used > 0) return {std::max(50 - idle_used, 33), gpus};
    return {std::max(100 - free / 100, 50), gpus};
  }
  Choice choose_without_gpus(const NodeView& /*view*/, const Demand& /*demand*/) override {
    return {0, 0, 0};
  }
};

}  // namespace

std::unique_ptr<Policy> make_packing() { return std::make_unique<Packing>(); }

}  // namespace aliquot::scheduler
