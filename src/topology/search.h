// Which GPUs of a node belong together: the best set for a request, exactly.
//
// Leaves to others: which node (scheduler), the fast path without constraints (best_table.h), words
// for people (reason.h). Pure; any thread.
//
// The order of sets, first difference decides:
//   1. bandwidth of the slowest hop of the best ring (of two GPUs: their link), the more the better
//   2. sum of the bandwidths of all pairs
//   3. nearness to NICs, where asked; then pairs within one NUMA node, where asked
//   4. what the GPUs left free are worth to later jobs (Shape::whole)
//   5. sum of the latencies of all pairs, the less the better
//   6. the lowest indices: {0,3} before {1,2}
#pragma once

#include <cstdint>
#include <tuple>

#include "common/result.h"
#include "topology/shape.h"

namespace aliquot::topology {

struct Request {
  unsigned count = 1;
  GpuSet free = {};            // what may be taken
  GpuSet include = {};         // must be in the answer
  GpuSet exclude = {};         // must not; stays free for others
  bool one_numa_node = false;  // all of one NUMA node, or nothing
  bool one_clique = false;     // every pair joined by NVLink, or nothing
  bool near_nics = false;      // prefer
  bool near_numa = false;      // prefer
};

// The five numbers that order sets; a greater Rating is a better set. Ties: is_before.
struct Rating {
  std::uint32_t ring_mb_s = 0;
  std::uint64_t pairs_mb_s = 0;
  unsigned nic_nearness = 0;     // 0 where not asked
  unsigned same_numa_pairs = 0;  // 0 where not asked
  std::uint64_t whole = 0;       // of what stays free
  std::uint64_t latency_ns = 0;  // less is better

  friend auto operator<=>(const Rating& a, const Rating& b) {
    const auto key = [](const Rating& r) {
      return std::tuple(r.ring_mb_s, r.pairs_mb_s, r.nic_nearness, r.same_numa_pairs, r.whole,
                        ~r.latency_ns);
    };
    return key(a) <=> key(b);
  }
  bool operator==(const Rating&) const = default;
};

Rating rating_of(const Shape& shape, const Request& request, GpuSet chosen);

// Of two sets of one size: the one whose sorted indices come first.
constexpr bool is_before(GpuSet a, GpuSet b) {
  const std::uint32_t differ = a.bits() ^ b.bits();
  return (a.bits() & differ & (~differ + 1)) != 0;
}

// Whether the set has what the request insists on.
bool satisfies(const Shape& shape, const Request& request, GpuSet set);

// The best set. Errors: kInvalid when no state of this node could give it, kExhausted when only the
// GPUs that are not free stand in the way; both say what is missing.
Result<GpuSet> best_set(const Shape& shape, const Request& request);

}  // namespace aliquot::topology
