#include "scheduler/policy_best_fit.h"

#include <algorithm>

#include "scheduler/policy_parts.h"

namespace aliquot::scheduler {
namespace {

constexpr std::int64_t kMostCpu = 128'000;
constexpr std::int64_t kMostGpu = 8'000;

class BestFit final : public Policy {
 public:
  std::string_view name() const override { return "bestfit"; }
  Choice choose(const NodeView& view, const Demand& demand, const Ask& ask,
                GpuMask fitting) override {
    const int gpu_left = free_milli(view) - asked_milli(ask, view.shape) * ask.count;
    return {score(view.state.cpu_milli - demand.cpu_milli, gpu_left),
            usual_gpus(view, ask, fitting)};
  }
  Choice choose_without_gpus(const NodeView& view, const Demand& demand) override {
    return {score(view.state.cpu_milli - demand.cpu_milli, free_milli(view)), 0, 0};
  }

 private:
  // 100 * (1 - (cpu/kMostCpu + gpu/kMostGpu) / 2), rounded down. A node larger than the largest
  // would go below 0, where a score may not be.
  static Score score(std::int64_t cpu_left, std::int64_t gpu_left) {
    const std::int64_t used = 2 * kMostCpu - cpu_left - gpu_left * (kMostCpu / kMostGpu);
    return static_cast<Score>(std::max<std::int64_t>(0, 100 * used / (2 * kMostCpu)));
  }
};

}  // namespace

std::unique_ptr<Policy> make_best_fit() { return std::make_unique<BestFit>(); }

}  // namespace aliquot::scheduler
