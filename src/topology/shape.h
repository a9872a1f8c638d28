// The shape of a node: its link graph as the search sees it, and what is known of every set of its
// GPUs. Nodes of equal key have equal shapes and can share one.
//
// Leaves to others: which set a job gets (search.h, best_table.h), words for people (reason.h).
// A value, not changed after it was made: any thread may read it.
//
// For every set of GPUs it knows, in tables over all 2^n sets (n <= 16):
//   ring     the bandwidth of the slowest hop of the best ring through all of them; of two GPUs
//            their link; 0 for fewer. By dynamic programming over (set, last GPU of a path that
//            starts at the set's lowest GPU): 2^n n^2 steps, exact.
//   pairs    the sum of all its pairs' bandwidths.
//   latency  the sum of all its pairs' latencies.
//   whole    what the set is worth to later jobs when it is left free: the sum over all subsets of
//            two or more GPUs of grade x 4^(GPUs - 2), where grade is the rank of the subset's
//            worst pair among the node's pairs (0 for the worst ones there are). So cliques of good
//            links count, larger ones more, and a node whose pairs are all equal has 0 throughout.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "common/result.h"
#include "model/gpu_set.h"
#include "model/topology.h"

namespace aliquot::topology {

using model::GpuSet;

// One pair of GPUs, reduced to what decides.
struct Pair {
  std::uint32_t mb_s = 0;
  std::uint32_t latency_ns = 0;  // of a "SYS" path inside one NUMA node: that of NODE
  bool linked = false;           // by NVLink or C2C; of plain weights the greatest are
  bool same_numa = false;        // both known and equal
  bool operator==(const Pair&) const = default;
};

class Shape {
 public:
  static constexpr unsigned kMostGpus = 16;

  // A node without GPUs or with more than kMostGpus is refused.
  static Result<Shape> of(const model::NodeTopology& node);

  unsigned size() const { return size_; }
  GpuSet all() const { return GpuSet::first(size_); }
  const Pair& pair(unsigned a, unsigned b) const { return pairs_[a * size_ + b]; }
  // How near the GPU's nearest NIC is: 4 PIX, 3 PXB, 2 PHB, 1 NODE, 0 SYS or no NIC.
  unsigned nic_nearness(unsigned gpu) const { return nic_nearness_[gpu]; }

  std::uint32_t ring_mb_s(GpuSet set) const { return levels_[ring_level_[set.bits()]]; }
  std::uint64_t pairs_mb_s(GpuSet set) const { return pairs_mb_s_[set.bits()]; }
  std::uint64_t latency_ns(GpuSet set) const { return latency_ns_[set.bits()]; }
  std::uint64_t whole(GpuSet set) const { return whole_[set.bits()]; }

  // Sums over the set's GPUs and pairs.
  unsigned nic_nearness(GpuSet set) const;
  unsigned same_numa_pairs(GpuSet set) const;
  bool is_clique(GpuSet set) const;
  bool in_one_numa_node(GpuSet set) const;

  // The GPUs of the set in the order of a best ring, from the lowest.
  std::vector<unsigned> best_ring(GpuSet set) const;

 private:
  // The widest path through a set from its lowest GPU to each GPU: a level for each end.
  using PathLevels = std::array<std::uint8_t, kMostGpus>;

  Shape() = default;
  void grade_bandwidths();
  void find_rings();
  void sum_pairs();
  void value_wholes();
  std::uint8_t level(unsigned a, unsigned b) const { return pair_level_[a][b]; }

  unsigned size_ = 0;
  std::vector<Pair> pairs_;
  std::vector<unsigned> nic_nearness_;
  // Bandwidths that occur, ascending; levels_[0] is 0 and means "no path".
  std::vector<std::uint32_t> levels_;
  std::array<PathLevels, kMostGpus> pair_level_{};
  std::vector<PathLevels> path_level_;
  std::vector<std::uint8_t> ring_level_;
  std::vector<std::uint64_t> pairs_mb_s_;
  std::vector<std::uint64_t> latency_ns_;
  std::vector<std::uint64_t> whole_;
};

// Equal for nodes of equal shape: the same GPUs in the same order with equal pairs and equally near
// NICs. Names, CPU lists and the numbers of NUMA nodes do not enter.
std::string shape_key(const model::NodeTopology& node);

}  // namespace aliquot::topology
