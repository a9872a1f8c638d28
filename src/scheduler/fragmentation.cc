#include "scheduler/fragmentation.h"

#include <algorithm>

namespace aliquot::scheduler {

const Fragmentation::Suited& Fragmentation::suited(std::int32_t shape_id, const NodeShape& shape) {
  const auto at = static_cast<std::size_t>(shape_id);
  if (by_shape_.size() <= at) by_shape_.resize(at + 1);
  Suited& suited = by_shape_[at];
  if (suited.known) return suited;
  suited.known = true;
  for (const WorkShape& m : workload_.shapes) {
    const bool model_ok = m.models.empty() || std::find(m.models.begin(), m.models.end(),
                                                        shape.gpu.name) != m.models.end();
    if (m.gpus == 0 || !model_ok)
      suited.others += m.count;
    else
      suited.steps.push_back({m.cpu_milli, m.gpu_milli, m.gpus, m.count});
  }
  return suited;
}

std::int64_t Fragmentation::of(const ShareState& state, const NodeShape& shape) {
  if (const std::int64_t* known = memo_.find(state)) return *known;
  const Suited& shapes = suited(state.shape, shape);
  std::array<std::int32_t, model::kMaxGpusPerNode + 1> below{};  // sum of the i least free
  for (std::size_t i = 0; i < static_cast<std::size_t>(state.gpus); ++i)
    below[i + 1] = below[i] + state.free[i];
  const std::int64_t all = below[static_cast<std::size_t>(state.gpus)];
  std::int64_t sum = shapes.others * all;
  for (const Step& m : shapes.steps) {
    const int nth = state.gpus - m.gpus;  // the smallest GPU of the k roomiest
    if (m.cpu_milli > state.cpu_milli || nth < 0 ||
        state.free[static_cast<std::size_t>(nth)] < m.gpu_milli) {
      sum += m.count * all;
      continue;
    }
    std::size_t small = 0;
    while (state.free[small] < m.gpu_milli) ++small;
    sum += m.count * below[small];
  }
  memo_.insert(state, sum);
  return sum;
}

}  // namespace aliquot::scheduler
