// NodeShape: what never changes about a node, shared by all nodes of one kind. NodeState: what is
// free on it. A score depends on these two only, so nodes in equal state share one score.
//
// Pure values; any thread.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "model/cluster.h"
#include "scheduler/demand.h"

namespace aliquot::scheduler {

using GpuMask = std::uint32_t;  // bit i: the GPU at position i

struct NodeShape {
  std::int64_t cpu_milli = 0;
  int gpu_count = 0;
  model::GpuModel gpu;
  std::uint32_t mig_gpus = 0;
  std::vector<model::MigProfile> mig_profiles;
  model::Overcommit overcommit;
  std::string topology;
  model::Tier tier = model::Tier::kCloud;
  int latency_us = 0;
  bool operator==(const NodeShape&) const = default;

  // What one GPU may promise in all, overcommit included.
  Bytes memory_capacity() const { return gpu.memory_bytes * overcommit.memory_percent / 100; }
  int cores_capacity() const { return model::kWholeGpuMilli * overcommit.cores_percent / 100; }
};

NodeShape shape_of(const model::NodeSpec& spec);

struct GpuState {
  Bytes memory = 0;        // free
  std::int16_t cores = 0;  // free, milli
  std::uint8_t mig_used = 0;
  bool mig = false;       // in MIG mode
  bool idle = false;      // nothing on it, ours or foreign
  std::uint8_t busy = 0;  // tenths of its compute at work, as measured; 0 where no policy reads it
  bool operator==(const GpuState&) const = default;
  auto operator<=>(const GpuState&) const = default;
};

struct NodeState {
  std::uint32_t shape = 0;
  std::int32_t cpu_milli = 0;  // free
  std::uint8_t kinds = 0;      // bit k: a request of DemandKind k runs here
  std::uint8_t gpu_count = 0;
  std::array<GpuState, model::kMaxGpusPerNode> gpus{};
  bool operator==(const NodeState& other) const;

  // The part of the GPU at `i` that is free, by the scarcer of compute and memory: 0..1000.
  int free_milli(int i, const NodeShape& shape) const;
};

std::size_t hash_of(const NodeState& state);

// A node with nothing on it.
NodeState empty_state(const NodeShape& shape, std::uint32_t shape_id);

// The bytes that `ask` takes of one GPU of this shape.
Bytes memory_need(const Ask& ask, const NodeShape& shape);

// Whether the GPU at `i` can take one unit of `ask` (a share or a whole GPU).
bool gpu_fits(const NodeState& state, int i, const Ask& ask, Bytes need);

// All GPUs for which gpu_fits holds.
GpuMask fitting_gpus(const NodeState& state, const NodeShape& shape, const Ask& ask);

// The `count` GPUs of `fitting` with least room; ties to the lowest position.
GpuMask least_free(const NodeState& state, const NodeShape& shape, GpuMask fitting, int count);

// The `count` lowest positions of `fitting`.
GpuMask first_of(GpuMask fitting, int count);

// Takes one unit of `ask` from each GPU of `mask`.
void take(NodeState& state, const NodeShape& shape, const Ask& ask, GpuMask mask);

}  // namespace aliquot::scheduler
