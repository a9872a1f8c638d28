// Demand: a request reduced to the amounts that placement compares. Requests of equal demand form
// one class, and a node's score for a class is computed once for each state the node can be in.
//
// Pure values; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/result.h"
#include "model/request.h"

namespace aliquot::scheduler {

using model::Bytes;

// What a request is by its GPUs; GpuClustering keeps like with like.
enum class DemandKind : std::uint8_t { kCpuOnly, kShare, kOne, kTwo, kFour, kEight, kMore, kMig };

struct Ask {
  model::GpuKind kind = model::GpuKind::kShare;
  int count = 1;
  int cores_milli = 0;
  Bytes memory_bytes = 0;
  int memory_percent = 0;
  std::string mig_profile;
  int container = 0;
  bool operator==(const Ask&) const = default;
};

struct Demand {
  std::int64_t cpu_milli = 0;
  Bytes memory_bytes = 0;
  std::vector<Ask> asks;  // hardest to place first: whole GPUs, MIG slices, large shares
  std::vector<std::string> gpu_models;
  model::GpuFloor floor;
  model::LinkNeed links = model::LinkNeed::kAny;
  int max_latency_us = 0;
  // Of a gang that lies on several nodes (gang_nodes.h): it sends out of the node, and the part of
  // it placed before goes by these NICs; 0 where none was.
  bool over_nodes = false;
  std::uint64_t peer_rails = 0;
  bool operator==(const Demand&) const = default;

  DemandKind kind() const;
  int gpus() const;  // GPUs touched when no two asks share one
};

// Invalid where an amount is negative, a count is not 1..kMaxGpusPerNode, a percentage is above 100
// or a share asks for more compute than one GPU has.
Result<Demand> demand_of(const model::Request& request);

std::size_t hash_of(const Demand& demand);

}  // namespace aliquot::scheduler
