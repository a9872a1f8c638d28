#include "scheduler/rollout.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace aliquot::scheduler {
namespace {

double draw_weight(const WorkShape& shape, const RolloutTuning& t) {
  const auto count = static_cast<double>(shape.count);
  if (shape.gpus == 0) return count * t.cpu_only / 100.0;
  const double asked = shape.gpus * shape.gpu_milli / 1000.0;
  double weight = count * std::pow(asked, -t.size_exponent / 100.0);
  if (shape.gpus == 1 && shape.gpu_milli <= 200) weight *= t.small_share / 100.0;
  if (shape.gpus == 1 && shape.gpu_milli >= 700 && shape.gpu_milli < 1000)
    weight *= t.large_share / 100.0;
  return weight;
}

bool serves(const WorkShape& shape, const NodeShape& node) {
  return shape.models.empty() ||
         std::find(shape.models.begin(), shape.models.end(), node.gpu.name) != shape.models.end();
}

std::int64_t demand_of(const WorkShape& shape) {
  return shape.count * shape.gpus * shape.gpu_milli;
}

}  // namespace

Rollout::Rollout(const Workload& workload, const RolloutTuning& tuning)
    : tuning_(tuning), shapes_(workload.shapes) {
  std::vector<double> upto;
  double sum = 0;
  for (const WorkShape& shape : shapes_) upto.push_back(sum += draw_weight(shape, tuning));
  std::mt19937_64 engine(tuning.seed);
  if (sum <= 0) return;
  sequences_.resize(static_cast<std::size_t>(tuning.sequences));
  for (auto& sequence : sequences_)
    for (int i = 0; i < tuning.length; ++i) {
      const double at = sum * static_cast<double>(engine() >> 11) * 0x1p-53;
      const auto found = std::upper_bound(upto.begin(), upto.end() - 1, at);
      sequence.push_back(static_cast<std::uint16_t>(found - upto.begin()));
    }
}

// Fills in least_cpu and least_gpu, and drops what comes after the last request for a GPU.
void Rollout::note_least(std::vector<Step>& steps) {
  while (!steps.empty() && steps.back().gpus == 0) steps.pop_back();
  std::int32_t cpu = std::numeric_limits<std::int32_t>::max();
  std::int16_t gpu = std::numeric_limits<std::int16_t>::max();
  for (std::size_t i = steps.size(); i-- > 0;) {
    if (steps[i].gpus > 0) {
      cpu = std::min(cpu, steps[i].cpu_milli);
      gpu = std::min(gpu, steps[i].gpu_milli);
    }
    steps[i].least_cpu = cpu;
    steps[i].least_gpu = gpu;
  }
}

const Rollout::Suited& Rollout::suited(std::int32_t shape_id, const NodeShape& node) {
  const auto at = static_cast<std::size_t>(shape_id);
  if (by_shape_.size() <= at) by_shape_.resize(at + 1);
  Suited& suited = by_shape_[at];
  if (suited.known) return suited;
  suited.known = true;
  for (const auto& sequence : sequences_) {
    std::vector<Step>& steps = suited.sequences.emplace_back();
    for (const std::uint16_t i : sequence) {
      const WorkShape& s = shapes_[i];
      if (serves(s, node) && s.gpus <= node.gpu_count)
        steps.push_back({static_cast<std::int32_t>(s.cpu_milli),
                         static_cast<std::int16_t>(s.gpu_milli), static_cast<std::int16_t>(s.gpus),
                         0, 0});
    }
    note_least(steps);
  }
  std::int64_t all = 0;
  std::int64_t served = 0;
  for (const WorkShape& s : shapes_) all += demand_of(s);
  if (all == 0) return suited;
  for (const WorkShape& s : shapes_) {
    if (!serves(s, node)) continue;
    served += demand_of(s);
    if (s.gpus >= 2)
      suited.blocks.push_back({static_cast<std::int32_t>(s.cpu_milli),
                               static_cast<std::int16_t>(s.gpus), (demand_of(s) << 20) / all});
  }
  suited.served = static_cast<int>(1000 * served / all);
  return suited;
}

std::int64_t Rollout::play(ShareState s, const std::vector<Step>& steps) const {
  const auto n = static_cast<std::size_t>(s.gpus);
  for (const Step& step : steps) {
    if (step.least_cpu > s.cpu_milli || step.least_gpu > s.free[n - 1]) break;
    if (step.cpu_milli > s.cpu_milli || step.gpu_milli > s.free[n - 1]) continue;
    if (step.gpus == 0) {
      s.cpu_milli -= step.cpu_milli;
      continue;
    }
    if (step.gpus == 1) {
      std::size_t i = 0;  // the roomiest GPU fits, so this ends
      while (s.free[i] < step.gpu_milli) ++i;
      s.take(static_cast<int>(i), step.gpu_milli);
    } else {
      const std::size_t first = n - static_cast<std::size_t>(step.gpus);
      if (s.free[first] < step.gpu_milli) continue;
      for (std::size_t i = first; i < n; ++i) s.take(static_cast<int>(i), step.gpu_milli);
    }
    s.cpu_milli -= step.cpu_milli;
  }
  return s.total();
}

std::int64_t Rollout::blocked(const ShareState& state, const Suited& suited) const {
  int idle = 0;
  for (int i = 0; i < state.gpus; ++i)
    idle += state.free[static_cast<std::size_t>(i)] >= 1000 ? 1 : 0;
  const std::int64_t total = state.total();
  std::int64_t sum = 0;
  for (const Block& b : suited.blocks) {
    std::int64_t fit = idle / b.gpus;
    if (b.cpu_milli > 0) fit = std::min<std::int64_t>(fit, state.cpu_milli / b.cpu_milli);
    sum += b.weight * (total - fit * b.gpus * 1000);
  }
  return sum >> 20;
}

std::int64_t Rollout::idle_left(const ShareState& state, const NodeShape& shape) {
  if (const std::int64_t* known = memo_.find(state)) return *known;
  const Suited& s = suited(state.shape, shape);
  std::int64_t sum = 0;
  for (const auto& steps : s.sequences) sum += play(state, steps);
  sum += blocked(state, s) * tuning_.blocks * tuning_.sequences / 100;
  memo_.insert(state, sum);
  return sum;
}

}  // namespace aliquot::scheduler
