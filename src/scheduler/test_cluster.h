// Small clusters and requests for this room's tests. Tests only.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "scheduler/policies.h"
#include "scheduler/scheduler.h"

namespace aliquot::scheduler::test {

inline constexpr model::Bytes kGiB = model::Bytes{1} << 30;

inline model::NodeSpec node(std::string name, int gpus, std::string gpu_model = "A100") {
  model::NodeSpec spec;
  spec.name = std::move(name);
  spec.cpu_milli = 64'000;
  spec.memory_bytes = 256 * kGiB;
  spec.gpu_count = gpus;
  spec.gpu = {std::move(gpu_model), 80, 40 * kGiB, 312};
  return spec;
}

inline model::NodeSpec node_in(std::string name, int gpus, std::vector<std::string> domains) {
  model::NodeSpec spec = node(std::move(name), gpus);
  spec.domains = std::move(domains);
  return spec;
}

inline model::Request asking(model::GpuAsk ask) {
  model::Request request;
  request.containers = {{"main", 1'000, kGiB, std::move(ask)}};
  return request;
}

inline model::Request share(int cores, model::Bytes memory) {
  return asking({model::GpuKind::kShare, 1, cores, memory, 0, {}});
}

inline model::Request whole(int count) {
  return asking({model::GpuKind::kWhole, count, 0, 0, 0, {}});
}

inline Scheduler scheduler_of(std::vector<model::NodeSpec> nodes,
                              std::string_view policy = "binpack") {
  return {std::move(nodes), std::move(*make_policy(policy, {}))};
}

}  // namespace aliquot::scheduler::test
