// The FGD paper's inflation protocol: how much of a cluster a policy can fill when pods keep coming
// and none leaves.
//
// Pods are sorted by name and shuffled with the seed; the list is then brought to `percent` of the
// cluster's GPU capacity by pods drawn with replacement (or by dropping some); they are placed one
// by one, a refused pod is gone. Nodes are taken in a permuted order, which decides ties: with it
// our figures equal the published ones, with the order of the CSV some differ by up to 2 points.
//
// Pure; any thread, one run per thread.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "common/result.h"
#include "replay/openb.h"
#include "scheduler/rollout_tuning.h"

namespace aliquot::replay {

inline constexpr int kMostArrivedPercent = 130;

enum class NodeOrder : std::uint8_t { kPermuted, kAsListed };

struct InflationPlan {
  std::string_view policy;
  std::uint64_t seed = 42;
  NodeOrder order = NodeOrder::kPermuted;
  int percent = kMostArrivedPercent;
  scheduler::RolloutTuning rollout{};
};

struct InflationResult {
  // Mean share of GPU capacity allocated (percent) while that percent of it had arrived, 0..130.
  std::array<double, kMostArrivedPercent + 1> allocated{};
  // GPU capacity that the typical pods cannot use (percent of all), at the end.
  double fragmented = 0;
  std::int64_t arrived_pods = 0;
  std::int64_t refused_pods = 0;
  std::int64_t arrived_8gpu = 0;
  std::int64_t placed_8gpu = 0;
};

// The arrivals of one run, in order.
std::vector<const OpenbPod*> inflate(const std::vector<OpenbPod>& pods, std::int64_t capacity_milli,
                                     const InflationPlan& plan);

Result<InflationResult> run_inflation(const std::vector<model::NodeSpec>& nodes,
                                      const std::vector<OpenbPod>& pods, const InflationPlan& plan);

}  // namespace aliquot::replay
