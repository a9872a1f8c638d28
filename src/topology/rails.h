// Rails: how the GPUs of a node reach other nodes.
//
// Each GPU goes out by the NIC nearest to it - its rail; of equally near ones by the first. Several
// GPUs of a job behind one NIC send their sum over it once, and the nearest of them speaks for the
// others. A rail that both ends of a hop have in common runs through one leaf switch at the NIC's
// rate; what leaves its rail or its leaf crosses the spine, at half of it (kSpineShare, assumed:
// spines are commonly half as wide as leaves).
//
// Leaves to others: which GPUs a job gets (scheduler), who else sends (replay). A value, not
// changed after it was made: any thread may read it. Rates are MB/s (10^6 bytes a second), one way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/gpu_set.h"
#include "model/topology.h"
#include "topology/collective.h"

namespace aliquot::topology {

// What a rail keeps of its rate where traffic leaves it for another rail or another leaf switch.
inline constexpr double kSpineShare = 0.5;

// NICs of one node: bit i is NIC i. NICs beyond the 64th carry no rail.
using RailSet = std::uint64_t;

class Rails {
 public:
  explicit Rails(const model::NodeTopology& node);

  // None where the node has no NIC.
  RailSet of(model::GpuSet gpus) const;

  // All GPUs that go out by one of those.
  model::GpuSet behind(RailSet rails) const;

  // The same rate in and out over each rail of the set. `fabric` is the node's.
  Traffic traffic(const Fabric& fabric, model::GpuSet gpus) const;

 private:
  static constexpr unsigned kNone = 64;
  struct Way {
    unsigned nic = kNone;
    model::LinkKind kind = model::LinkKind::kSys;
  };
  std::vector<Way> ways_;  // by GPU
  std::size_t gpus_;       // NIC i is device gpus_ + i
};

// How many rails' worth of rate a hop has from a node that goes out by `here` to one that goes by
// `there`.
double rails_worth(RailSet here, RailSet there, bool one_leaf);

}  // namespace aliquot::topology
