#include "scheduler/policy_dot_product.h"

#include <algorithm>

#include "scheduler/policy_parts.h"

namespace aliquot::scheduler {
namespace {

constexpr std::int64_t kMostCpu = 128'000;
constexpr std::int64_t kMostGpu = 8'000;
constexpr std::int64_t kCpuSquared = kMostCpu * kMostCpu;
constexpr std::int64_t kRatio = kCpuSquared / (kMostGpu * kMostGpu);

class DotProduct final : public Policy {
 public:
  std::string_view name() const override { return "dotprod"; }
  Choice choose(const NodeView& view, const Demand& demand, const Ask& ask,
                GpuMask fitting) override {
    const std::int64_t asked = std::int64_t{asked_milli(ask, view.shape)} * ask.count;
    return {score(view.state.cpu_milli * demand.cpu_milli, free_milli(view) * asked),
            usual_gpus(view, ask, fitting)};
  }
  Choice choose_without_gpus(const NodeView& view, const Demand& demand) override {
    return {score(view.state.cpu_milli * demand.cpu_milli, 0), 0, 0};
  }

 private:
  // 100 * (1 - (cpu/kMostCpu^2 + gpu/kMostGpu^2) / 2), rounded down; not below 0 on larger nodes.
  static Score score(std::int64_t cpu, std::int64_t gpu) {
    const std::int64_t rest = 2 * kCpuSquared - cpu - kRatio * gpu;
    return static_cast<Score>(std::max<std::int64_t>(0, 100 * rest / (2 * kCpuSquared)));
  }
};

}  // namespace

std::unique_ptr<Policy> make_dot_product() { return std::make_unique<DotProduct>(); }

}  // namespace aliquot::scheduler
