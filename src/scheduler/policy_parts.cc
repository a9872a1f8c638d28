#include "scheduler/policy_parts.h"

#include <algorithm>

namespace aliquot::scheduler {

int free_milli(const NodeView& view) {
  int sum = 0;
  for (int i = 0; i < view.state.gpu_count; ++i) sum += view.state.free_milli(i, view.shape);
  return sum;
}

int asked_milli(const Ask& ask, const NodeShape& shape) {
  if (ask.kind == model::GpuKind::kWhole) return model::kWholeGpuMilli;
  int milli = ask.cores_milli;
  if (shape.gpu.memory_bytes > 0) {
    const Bytes need = std::min(memory_need(ask, shape), shape.gpu.memory_bytes);
    const Bytes rounded_up =
        (need * model::kWholeGpuMilli + shape.gpu.memory_bytes - 1) / shape.gpu.memory_bytes;
    milli = std::max(milli, static_cast<int>(rounded_up));
  }
  return std::max(milli, 1);
}

GpuMask usual_gpus(const NodeView& view, const Ask& ask, GpuMask fitting) {
  return ask.kind == model::GpuKind::kWhole
             ? first_of(fitting, ask.count)
             : least_free(view.state, view.shape, fitting, ask.count);
}

Score fullness(const NodeView& view, const Demand& demand, const Ask* ask) {
  const NodeShape& shape = view.shape;
  const std::int64_t cpu_left = view.state.cpu_milli - demand.cpu_milli;
  std::int64_t full = 1000 - 1000 * cpu_left / std::max<std::int64_t>(1, shape.cpu_milli);
  if (shape.gpu_count == 0) return static_cast<Score>(full);
  const std::int64_t capacity = std::int64_t{model::kWholeGpuMilli} * shape.gpu_count;
  const std::int64_t taken = ask == nullptr ? 0 : asked_milli(*ask, shape) * ask->count;
  full += 2 * (1000 - 1000 * (free_milli(view) - taken) / capacity);
  return static_cast<Score>(full / 3);
}

}  // namespace aliquot::scheduler
