// Traces that others have published, each in its own columns, read as jobs of ours.
//
//   Philly-derived (Gavel, MIT): no header, tabs; model, command, a flag, whether it needs data,
//     steps, arrival in seconds, GPUs. One virtual cluster a file.
//   Pollux workloads (Apache-2.0): name,time,application,num_replicas,batch_size.
//   Alibaba 2025 online service (dlrm): instances with CPU, GPU, RDMA, memory and disk, and when
//   each
//     was made, scheduled and deleted.
//   Alibaba 2026 node mix: gpu_model,gpu_capacity_num,cpu_num,node_name - a cluster, not a trace.
//
// Errors name file, line and column; a bad file gives nothing. Pure; any thread.
#pragma once

#include <string_view>
#include <vector>

#include "common/result.h"
#include "model/cluster.h"
#include "replay/trace.h"

namespace aliquot::replay {

// `name` stands in errors and in the names of jobs that have none.
Result<Trace> parse_philly_trace(std::string_view text, std::string_view name);
Result<Trace> parse_pollux_trace(std::string_view text, std::string_view name);
Result<Trace> parse_online_trace(std::string_view text, std::string_view name);

// The list tells no host memory and no GPU memory: nodes get enough of the first, none of the
// second.
Result<std::vector<model::NodeSpec>> parse_spot_nodes(std::string_view text, std::string_view name);

// Whether a text begins as one of these does.
bool is_philly_trace(std::string_view text);
bool is_pollux_trace(std::string_view text);
bool is_online_trace(std::string_view text);
bool is_spot_nodes(std::string_view text);

}  // namespace aliquot::replay
