// NodeLinks: what jobs on one node send over its wires, for nodes of one link shape.
//
// Rings are the best there are of the GPUs a job got; out of the node they go by their rails.
//
// Not thread-safe: it remembers rings. Rates are MB/s (10^6 bytes a second).
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "common/result.h"
#include "model/gpu_set.h"
#include "model/topology.h"
#include "topology/collective.h"
#include "topology/rails.h"
#include "topology/shape.h"

namespace aliquot::replay {

class NodeLinks {
 public:
  static Result<NodeLinks> of(const model::NodeTopology& node);

  const topology::Fabric& fabric() const { return fabric_; }

  // An all-reduce among the set's GPUs; of fewer than two it uses nothing.
  const topology::Traffic& ring(model::GpuSet set);

  // The NICs that the set goes out by; none where the node has no NIC.
  topology::RailSet rails(model::GpuSet set) const { return rails_.of(set); }
  // The same rate in and out over each of those rails.
  topology::Traffic over_rails(model::GpuSet set) const { return rails_.traffic(fabric_, set); }

  // From the host's memory (or a drive behind it) into one GPU.
  topology::Traffic into(std::size_t gpu) const { return fabric_.from_memory(gpu); }

  // Whether every two GPUs have equal links, so that no choice among them is better.
  bool all_equal() const { return all_equal_; }

 private:
  NodeLinks(const model::NodeTopology& node, topology::Shape shape);

  topology::Shape shape_;
  topology::Fabric fabric_;
  topology::Rails rails_;
  bool all_equal_ = true;
  std::unordered_map<std::uint32_t, topology::Traffic> rings_;
};

}  // namespace aliquot::replay
