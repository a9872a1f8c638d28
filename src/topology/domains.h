// The tree of domains above the nodes of a cluster (NVLink domain or rack < leaf < spine < core),
// and gangs placed in it: all pods in the lowest domain that holds them.
//
// Leaves to others: reading labels from an API, HyperNode and Topology objects (their owners give
// paths), how many pods fit a host (scheduler). Pure; any thread.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/result.h"

namespace aliquot::topology {

// A host and the domains it lies in, outermost first: {"n17", {"core", "spine-1", "leaf-4"}}.
struct HostPath {
  std::string host;
  std::vector<std::string> domains;
  bool operator==(const HostPath&) const = default;
};

struct Domain {
  static constexpr std::size_t kNone = ~std::size_t{0};
  std::string name;
  unsigned tier = 0;  // 0 directly above hosts; a parent is above its highest child
  std::size_t parent = kNone;
  std::vector<std::size_t> children;
  std::vector<std::size_t> hosts;  // those directly in it
};

class DomainTree {
 public:
  // Domains of equal name under different parents are different. A root above all is added, and
  // left out again where it would only hold one domain.
  static DomainTree of(std::span<const HostPath> paths);

  static constexpr std::size_t kRoot = 0;
  // Parents come before their children; [kRoot] holds every host.
  const std::vector<Domain>& domains() const { return domains_; }
  const std::vector<std::string>& hosts() const { return hosts_; }
  // "spine-1/leaf-4", without the root that was added.
  std::string path_text(std::size_t domain) const;

 private:
  std::vector<Domain> domains_;
  std::vector<std::string> hosts_;
};

// The levels, outermost first, that occur among the labels: topograph's and the older NVIDIA ones,
// or the given ones as in a Topology object.
std::vector<std::string> known_levels(const std::map<std::string, std::string>& labels);
// A host's path by those levels; it ends before the first label that the host has not.
HostPath path_by_labels(std::string host, const std::map<std::string, std::string>& labels,
                        std::span<const std::string> levels);

// Slurm's topology.conf: topology/tree (SwitchName= with Nodes= or Switches=) or topology/block
// (BlockName= Nodes=, BlockSizes=). Errors are "where:line: what".
Result<std::vector<HostPath>> parse_topology_conf(std::string_view text, std::string_view where);

// "n[1-3,7],m2" as Slurm writes lists of hosts; digits keep their width.
Result<std::vector<std::string>> expanded_hosts(std::string_view list);

struct Gang {
  unsigned pods = 1;
  std::optional<unsigned> highest_tier = {};  // required: not in a domain above this tier
};

// What every host can take, by its index in DomainTree::hosts().
struct Room {
  std::span<const unsigned> free;  // pods that fit now
  std::span<const unsigned> all;   // pods that fit when nothing else runs
};

struct GangPlacement {
  std::size_t domain = 0;
  std::vector<std::pair<std::size_t, unsigned>> pods;  // host and how many, hosts ascending
  bool operator==(const GangPlacement&) const = default;
};

// The lowest tier that holds the gang; in it the domain that it fills most; inside, as few parts as
// can be: the roomiest whole, the last rest where it fits tightest. Ties go to the first one.
// Errors: kExhausted (not now) or kInvalid (never), saying what the roomiest domain has.
Result<GangPlacement> place_gang(const DomainTree& tree, const Room& room, const Gang& gang);

}  // namespace aliquot::topology
