#include "scheduler/node_state.h"

#include <algorithm>
#include <bit>
#include <cassert>

namespace aliquot::scheduler {

using model::GpuKind;
using model::kWholeGpuMilli;

NodeShape shape_of(const model::NodeSpec& spec) {
  return {spec.cpu_milli,  spec.gpu_count, spec.gpu,  spec.mig_gpus,  spec.mig_profiles,
          spec.overcommit, spec.topology,  spec.tier, spec.latency_us};
}

bool NodeState::operator==(const NodeState& other) const {
  return shape == other.shape && cpu_milli == other.cpu_milli && kinds == other.kinds &&
         gpu_count == other.gpu_count &&
         std::equal(gpus.begin(), gpus.begin() + gpu_count, other.gpus.begin());
}

int NodeState::free_milli(int i, const NodeShape& node) const {
  const GpuState& gpu = gpus[static_cast<std::size_t>(i)];
  if (gpu.mig) return 0;
  int milli = std::min<int>(gpu.cores, kWholeGpuMilli);
  if (node.gpu.memory_bytes > 0)
    milli =
        std::min<int>(milli, static_cast<int>(std::min<Bytes>(gpu.memory, node.gpu.memory_bytes) *
                                              kWholeGpuMilli / node.gpu.memory_bytes));
  return milli;
}

std::size_t hash_of(const NodeState& state) {
  constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15ULL;
  std::uint64_t h = (static_cast<std::uint64_t>(state.shape) << 40) ^
                    (static_cast<std::uint64_t>(state.kinds) << 32) ^
                    static_cast<std::uint32_t>(state.cpu_milli);
  for (int i = 0; i < state.gpu_count; ++i) {
    const GpuState& gpu = state.gpus[static_cast<std::size_t>(i)];
    const auto small =
        static_cast<std::uint64_t>(static_cast<std::uint16_t>(gpu.cores)) |
        static_cast<std::uint64_t>(gpu.mig_used) << 16 | static_cast<std::uint64_t>(gpu.mig) << 24 |
        static_cast<std::uint64_t>(gpu.idle) << 25 | static_cast<std::uint64_t>(gpu.busy) << 26;
    h = (h ^ (h >> 29)) * kOdd + (small << 36 ^ static_cast<std::uint64_t>(gpu.memory) ^ small);
  }
  h = (h ^ (h >> 32)) * kOdd;
  return h ^ (h >> 29);
}

NodeState empty_state(const NodeShape& shape, std::uint32_t shape_id) {
  NodeState state;
  state.shape = shape_id;
  state.cpu_milli = static_cast<std::int32_t>(shape.cpu_milli);
  state.gpu_count = static_cast<std::uint8_t>(shape.gpu_count);
  for (int i = 0; i < shape.gpu_count; ++i)
    state.gpus[static_cast<std::size_t>(i)] = {shape.memory_capacity(),
                                               static_cast<std::int16_t>(shape.cores_capacity()),
                                               0,
                                               (shape.mig_gpus >> i & 1) != 0,
                                               true,
                                               0};
  return state;
}

Bytes memory_need(const Ask& ask, const NodeShape& shape) {
  const Bytes by_percent = (shape.gpu.memory_bytes * ask.memory_percent + 99) / 100;
  return std::max(ask.memory_bytes, by_percent);
}

bool gpu_fits(const NodeState& state, int i, const Ask& ask, Bytes need) {
  const GpuState& gpu = state.gpus[static_cast<std::size_t>(i)];
  if (gpu.mig || gpu.memory < need) return false;
  return ask.kind == GpuKind::kWhole ? gpu.idle : gpu.cores >= ask.cores_milli;
}

GpuMask fitting_gpus(const NodeState& state, const NodeShape& shape, const Ask& ask) {
  const Bytes need = memory_need(ask, shape);
  GpuMask mask = 0;
  for (int i = 0; i < state.gpu_count; ++i)
    if (gpu_fits(state, i, ask, need)) mask |= GpuMask{1} << i;
  return mask;
}

GpuMask least_free(const NodeState& state, const NodeShape& shape, GpuMask fitting, int count) {
  assert(std::popcount(fitting) >= count);
  GpuMask chosen = 0;
  for (int n = 0; n < count; ++n) {
    GpuMask best = 0;
    int best_free = 0;
    for (GpuMask rest = fitting & ~chosen; rest != 0; rest &= rest - 1) {
      const int free = state.free_milli(std::countr_zero(rest), shape);
      if (best == 0 || free < best_free) best = rest & ~(rest - 1), best_free = free;
    }
    chosen |= best;
  }
  return chosen;
}

GpuMask first_of(GpuMask fitting, int count) {
  GpuMask chosen = 0;
  for (int n = 0; n < count; ++n) {
    chosen |= fitting & ~(fitting - 1);
    fitting &= fitting - 1;
  }
  return chosen;
}

void take(NodeState& state, const NodeShape& shape, const Ask& ask, GpuMask mask) {
  const Bytes need = memory_need(ask, shape);
  for (; mask != 0; mask &= mask - 1) {
    GpuState& gpu = state.gpus[static_cast<std::size_t>(std::countr_zero(mask))];
    gpu.idle = false;
    if (ask.kind == GpuKind::kWhole) {
      gpu.memory = 0;
      gpu.cores = 0;
    } else {
      gpu.memory -= need;
      gpu.cores = static_cast<std::int16_t>(gpu.cores - ask.cores_milli);
    }
  }
}

}  // namespace aliquot::scheduler
