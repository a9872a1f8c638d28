// The tree of domains above the hosts of a cluster (NVLink domain or rack < leaf < spine < core),
// and how labels, HyperNodes and Topology objects make paths in it.
//
// Leaves to others: reading those sources (inventory, topology_conf.h), placing gangs in the tree
// (scheduler). Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/result.h"
#include "model/domains.h"

namespace aliquot::topology {

using model::HostPath;
using model::Labels;

struct Domain {
  static constexpr std::size_t kNone = ~std::size_t{0};
  std::string path;       // "spine-1/leaf-4"; empty for the whole cluster
  std::size_t level = 0;  // 0 the whole cluster; a host's d-th domain has level d
  std::size_t parent = kNone;
  std::vector<std::size_t> children;
  std::vector<std::uint32_t> hosts;  // all below it, ascending
};

// Domains of equal name under different parents are different.
class DomainTree {
 public:
  static constexpr std::size_t kRoot = 0;

  // Hosts are numbered as listed.
  static DomainTree of(std::span<const HostPath> paths);

  // Parents come before their children; [kRoot] is the whole cluster.
  const std::vector<Domain>& domains() const { return domains_; }
  // Hosts that name fewer levels are in none of it.
  std::vector<std::size_t> at_level(std::size_t level) const;
  std::size_t deepest() const { return deepest_; }

 private:
  std::vector<Domain> domains_;
  std::size_t deepest_ = 0;
};

// The levels, outermost first, that occur among the labels: topograph's and the older NVIDIA ones.
// A Topology object gives its own.
std::vector<std::string> known_levels(const Labels& labels);

// A host's path by those levels; it ends before the first label that the host has not.
HostPath path_by_labels(std::string host, const Labels& labels,
                        std::span<const std::string> levels);

// The hosts' paths through the HyperNodes that hold them, in the order of `hosts`. Invalid where a
// HyperNode lies in two others or in itself, a host in two, or a pattern is none.
Result<std::vector<HostPath>> paths_by_hyper_nodes(std::span<const model::LabelledHost> hosts,
                                                   std::span<const model::HyperNode> hyper_nodes);

}  // namespace aliquot::topology
