// DomainTree: which nodes lie together. Level 0 is the whole cluster; level d is the node's d-th
// domain name, outermost first, within the domain above it - equal names under different parents
// are different domains.
//
// A value; any thread. Built from the snapshot's nodes and not changed with them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "scheduler/snapshot.h"

namespace aliquot::scheduler {

struct Domain {
  std::string path;  // "core-0/spine-1"; empty for the whole cluster
  std::size_t level = 0;
  std::vector<NodeId> nodes;          // by rank
  std::vector<std::size_t> children;  // indices in DomainTree::domains()
};

class DomainTree {
 public:
  explicit DomainTree(const Snapshot& snapshot);

  const std::vector<Domain>& domains() const { return domains_; }  // [0] is the whole cluster
  // Indices of all domains of a level; nodes that name fewer levels are in none of it.
  std::vector<std::size_t> at_level(std::size_t level) const;
  std::size_t deepest() const { return deepest_; }

 private:
  std::vector<Domain> domains_;
  std::size_t deepest_ = 0;
};

}  // namespace aliquot::scheduler
