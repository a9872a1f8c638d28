// The openb traces (Alibaba cluster-trace-gpu-v2023, also published with the FGD artifact): node
// lists and pod lists as CSV.
//
// Nodes: sn,cpu_milli,memory_mib,gpu,model, and in our own lists also gpu_memory_mib. Pods:
// name,cpu_milli,memory_mib,num_gpu,gpu_milli, and in all lists but multigpu* also
// gpu_spec,qos,pod_phase,creation_time,deletion_time, scheduled_time. Errors name file, line and
// column; a bad file gives nothing.
//
// Pure but for read_*; any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"
#include "model/cluster.h"
#include "model/request.h"
#include "scheduler/workload.h"

namespace aliquot::replay {

struct OpenbPod {
  std::string name;
  std::int64_t cpu_milli = 0;
  std::int64_t memory_mib = 0;
  int num_gpu = 0;
  int gpu_milli = 0;                  // of each GPU
  std::vector<std::string> gpu_spec;  // models that do; empty: any
  std::string qos;
  std::string phase;
  std::int64_t created_s = 0;
  std::int64_t deleted_s = 0;
  std::optional<std::int64_t> scheduled_s;  // pending pods never were
};

// `name` stands in errors.
Result<std::vector<model::NodeSpec>> parse_openb_nodes(std::string_view text,
                                                       std::string_view name);
Result<std::vector<OpenbPod>> parse_openb_pods(std::string_view text, std::string_view name);

Result<std::vector<model::NodeSpec>> read_openb_nodes(const std::filesystem::path& path);
Result<std::vector<OpenbPod>> read_openb_pods(const std::filesystem::path& path);

// One container; a pod of one whole GPU, or several, asks whole GPUs. GPU memory is not in the
// trace, so shares are of compute only.
model::Request request_of(const OpenbPod& pod);
scheduler::WorkShape work_shape_of(const OpenbPod& pod);

}  // namespace aliquot::replay
