// All policies, by name. A new one is a file pair and a row in policies.cc.
//
// Any thread; a policy made here belongs to the scheduler it is given to.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"
#include "model/topology.h"
#include "scheduler/policy.h"
#include "scheduler/rollout_tuning.h"
#include "scheduler/workload.h"

namespace aliquot::scheduler {

// What a policy may be built from; each takes what it needs.
struct PolicyInput {
  Workload workload;                      // expected requests: fgd, rollout
  std::uint64_t seed = 0;                 // random
  std::vector<ModelCapacity> capacity{};  // rollout
  RolloutTuning rollout{};
  std::map<std::string, model::NodeTopology> topologies{};  // topology: by NodeSpec::topology
};

struct PolicyRow {
  std::string_view name;
  std::string_view about;
  std::unique_ptr<Policy> (*make)(const PolicyInput& input);
};

std::span<const PolicyRow> policies();

// Not found: the message lists the names there are.
Result<std::unique_ptr<Policy>> make_policy(std::string_view name, const PolicyInput& input);

}  // namespace aliquot::scheduler
