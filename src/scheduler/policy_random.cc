#include "scheduler/policy_random.h"

#include <bit>
#include <random>

#include "scheduler/policy_parts.h"

namespace aliquot::scheduler {
namespace {

class Random final : public Policy {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  std::string_view name() const override { return "random"; }
  Selection selection() const override { return Selection::kUniform; }
  // The bias of a remainder is below 2^-40 here.
  std::uint64_t next_random(std::uint64_t bound) override { return engine_() % bound; }

  Choice choose(const NodeView& view, const Demand& /*demand*/, const Ask& ask,
                GpuMask fitting) override {
    if (ask.kind != model::GpuKind::kShare) return {0, usual_gpus(view, ask, fitting)};
    GpuMask chosen = 0;
    for (int n = 0; n < ask.count; ++n) {
      GpuMask rest = fitting & ~chosen;
      const auto skip = next_random(static_cast<std::uint64_t>(std::popcount(rest)));
      for (std::uint64_t i = 0; i < skip; ++i) rest &= rest - 1;
      chosen |= rest & ~(rest - 1);
    }
    return {0, chosen};
  }
  Choice choose_without_gpus(const NodeView& /*view*/, const Demand& /*demand*/) override {
    return {0, 0, 0};
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace

std::unique_ptr<Policy> make_random(std::uint64_t seed) { return std::make_unique<Random>(seed); }

}  // namespace aliquot::scheduler
