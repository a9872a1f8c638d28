// Of policy topology: the GPUs of a gang that lies on several nodes.
//
// The ring of such a gang goes through the nodes' NICs, so what counts of a set of GPUs is the
// slower of its ring and of all its rails together: two GPUs behind two NICs have twice the way out
// of two behind one. A hop is worth most where both ends have the same rails. Of equal sets the one
// whose rails fewest others share, then what topology's search says.
//
// Assumed: the nodes of a gang hang on one leaf switch (what does not has the same rate on any
// rail), and where a shape tells no NIC its ring alone counts. The scheduler's loop only.
#pragma once

#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "scheduler/policy.h"
#include "topology/best_table.h"
#include "topology/collective.h"
#include "topology/rails.h"

namespace aliquot::scheduler {

// The ways out of nodes of one shape.
class GangLinks {
 public:
  GangLinks(const model::NodeTopology& node, std::shared_ptr<const topology::BestTable> table);

  // A set of GPUs, the best one of those that leave by the same rails.
  struct Way {
    topology::GpuSet gpus;
    topology::RailSet rails = 0;
    double ring_mb_s = 0;  // inside the node; without bound for one GPU
    double rail_mb_s = 0;  // of each rail
    int shared = 0;        // GPUs behind those rails that others hold
    topology::Rating rating;

    // Over a hop to a node that goes by `peer`; 0: to any.
    double mb_s(topology::RailSet peer) const;
  };

  // Of `count` GPUs of `may`: one way for each set of rails.
  std::vector<Way> ways(topology::GpuSet may, unsigned count);

  const topology::BestTable& table() const { return *table_; }
  const topology::Rails& rails() const { return rails_; }

 private:
  double rail_mb_s(topology::GpuSet gpus);

  std::shared_ptr<const topology::BestTable> table_;  // shared by all shapes of equal links
  topology::Fabric fabric_;
  topology::Rails rails_;
  std::unordered_map<std::uint32_t, double> rail_mb_s_;
};

// `ways` is not empty.
const GangLinks::Way& best_way(std::span<const GangLinks::Way> ways, topology::RailSet peer);

// links[i] is of gang[i], null where its shape is not known: that one is left as it is.
void arrange_gang(std::span<GangSpot> gang, std::span<GangLinks* const> links);

}  // namespace aliquot::scheduler
