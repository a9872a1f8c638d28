// Second opinions on the search for its tests: the objectives computed anew from the definitions,
// by other ways than shape.cc takes. Slow on purpose. Test code; header only.
#pragma once

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "model/topology.h"
#include "topology/search.h"

namespace aliquot::topology::oracle {

using model::LinkKind;
using model::NodeTopology;
using Gpus = std::vector<unsigned>;

inline Gpus listed(GpuSet set) { return {set.begin(), set.end()}; }

inline std::uint32_t latency(const NodeTopology& node, unsigned a, unsigned b) {
  const model::Link& link = node.link(a, b);
  const bool near = node.same_numa(a, b) && link.kind == LinkKind::kSys;
  return near ? std::min(link.latency_ns, model::path_link(LinkKind::kNode).latency_ns)
              : link.latency_ns;
}

// Every order of the GPUs tried.
inline std::uint32_t ring_by_orders(const NodeTopology& node, GpuSet set) {
  Gpus order = listed(set);
  if (order.size() < 2) return 0;
  std::uint32_t best = 0;
  do {
    std::uint32_t slowest = node.link(order.back(), order[0]).bandwidth_mb_s;
    for (std::size_t i = 1; i < order.size(); ++i)
      slowest = std::min(slowest, node.link(order[i - 1], order[i]).bandwidth_mb_s);
    best = std::max(best, slowest);
  } while (std::next_permutation(order.begin() + 1, order.end()));
  return best;
}

// The rank of each pair among the qualities that occur.
class Grades {
 public:
  explicit Grades(const NodeTopology& node) {
    const unsigned n = static_cast<unsigned>(node.gpu_count());
    std::set<Quality> all;
    for (unsigned a = 0; a < n; ++a)
      for (unsigned b = 0; b < n; ++b)
        if (a != b) all.insert(quality(node, a, b));
    for (unsigned a = 0; a < n; ++a)
      for (unsigned b = 0; b < n; ++b)
        if (a != b)
          grade_[{a, b}] =
              static_cast<std::uint64_t>(std::distance(all.begin(), all.find(quality(node, a, b))));
  }

  // Grows cliques GPU by GPU: what `chosen` (worst pair `worst`) and all its extensions are worth.
  std::uint64_t whole(const Gpus& set) const {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < set.size(); ++i)
      for (std::size_t j = i + 1; j < set.size(); ++j) {
        Gpus chosen = {set[i], set[j]};
        sum += grown(set, j + 1, chosen, grade_.at({set[i], set[j]}), 1);
      }
    return sum;
  }

 private:
  using Quality = std::tuple<std::uint32_t, bool, std::int64_t>;
  static Quality quality(const NodeTopology& node, unsigned a, unsigned b) {
    return {node.link(a, b).bandwidth_mb_s, node.same_numa(a, b),
            -std::int64_t{latency(node, a, b)}};
  }

  std::uint64_t grown(const Gpus& set, std::size_t from, Gpus& chosen, std::uint64_t worst,
                      std::uint64_t weight) const {
    if (worst == 0) return 0;
    std::uint64_t sum = worst * weight;
    for (std::size_t i = from; i < set.size(); ++i) {
      std::uint64_t with = worst;
      for (const unsigned gpu : chosen) with = std::min(with, grade_.at({gpu, set[i]}));
      chosen.push_back(set[i]);
      sum += grown(set, i + 1, chosen, with, 4 * weight);
      chosen.pop_back();
    }
    return sum;
  }

  std::map<std::pair<unsigned, unsigned>, std::uint64_t> grade_;
};

inline bool allowed(const NodeTopology& node, const Request& request, const Gpus& set) {
  std::uint32_t greatest = 0;
  for (std::size_t a = 0; a < node.gpu_count(); ++a)
    for (std::size_t b = 0; b < a; ++b)
      if (node.link(a, b).kind == LinkKind::kWeight)
        greatest = std::max(greatest, node.link(a, b).bandwidth_mb_s);
  for (const unsigned a : set)
    for (const unsigned b : set) {
      if (a == b) continue;
      const model::Link& link = node.link(a, b);
      const bool linked =
          link.is_nvlink() || (link.kind == LinkKind::kWeight && link.bandwidth_mb_s == greatest);
      if (request.one_clique && !linked) return false;
      if (request.one_numa_node && !node.same_numa(a, b)) return false;
    }
  return true;
}

// All objectives but the ring, which the caller found in its own way.
inline Rating rating(const NodeTopology& node, const Grades& grades, const Request& request,
                     GpuSet chosen, std::uint32_t ring) {
  Rating r;
  r.ring_mb_s = ring;
  const Gpus set = listed(chosen);
  for (std::size_t i = 0; i < set.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      r.pairs_mb_s += node.link(set[i], set[j]).bandwidth_mb_s;
      r.latency_ns += latency(node, set[i], set[j]);
      if (request.near_numa && node.same_numa(set[i], set[j])) ++r.same_numa_pairs;
    }
    int nearest = 0;
    for (std::size_t nic = 0; nic < node.nic_count(); ++nic)
      nearest = std::max(nearest, static_cast<int>(LinkKind::kSys) -
                                      static_cast<int>(node.nic_link(set[i], nic).kind));
    if (request.near_nics) r.nic_nearness += static_cast<unsigned>(nearest);
  }
  r.whole = grades.whole(listed(request.free - chosen));
  return r;
}

// Sets of `count` out of `from`, `include` among them.
template <typename Visit>
void for_each_set(const Request& request, Visit&& visit) {
  const Gpus from = listed(request.free - request.exclude);
  if (from.size() < request.count) return;
  std::vector<bool> taken(from.size(), false);
  std::fill_n(taken.begin(), request.count, true);
  do {
    GpuSet set;
    for (std::size_t i = 0; i < from.size(); ++i)
      if (taken[i]) set.insert(from[i]);
    if (set.contains(request.include)) visit(set);
  } while (std::prev_permutation(taken.begin(), taken.end()));
}

struct Best {
  GpuSet set;
  Rating rating;
};

// By trying every order of every set. Sets come lowest indices first, so the first best one wins.
inline std::optional<Best> best_by_orders(const NodeTopology& node, const Request& request) {
  const Grades grades(node);
  std::optional<Best> best;
  for_each_set(request, [&](GpuSet set) {
    if (!allowed(node, request, listed(set))) return;
    const Rating r = rating(node, grades, request, set, ring_by_orders(node, set));
    if (!best || r > best->rating) best = Best{set, r};
  });
  return best;
}

// The sets of GPUs that a ring of hops of at least `mb_s` can visit, by the ends of the paths from
// each set's highest GPU (shape.cc starts at the lowest and keeps bandwidths, not ends).
class RingSets {
 public:
  RingSets(const NodeTopology& node, std::uint32_t mb_s)
      : n_(static_cast<unsigned>(node.gpu_count())), near_(n_, 0), ends_(std::size_t{1} << n_, 0) {
    for (unsigned a = 0; a < n_; ++a)
      for (unsigned b = 0; b < n_; ++b)
        if (a != b && node.link(a, b).bandwidth_mb_s >= mb_s) near_[a] |= 1u << b;
    for (std::uint32_t set = 1; set < ends_.size(); ++set) {
      const unsigned start = highest(set);
      if (set == 1u << start) {
        ends_[set] = set;
        continue;
      }
      for (unsigned end = 0; end < start; ++end)
        if ((set >> end & 1) != 0 && (ends_[set & ~(1u << end)] & near_[end]) != 0)
          ends_[set] |= 1u << end;
    }
  }
  bool has(std::uint32_t set) const {
    if (set == 0 || (set & (set - 1)) == 0) return true;
    return (ends_[set] & near_[highest(set)]) != 0;
  }

 private:
  static unsigned highest(std::uint32_t set) {
    return 31 - static_cast<unsigned>(std::countl_zero(set));
  }
  unsigned n_;
  std::vector<std::uint32_t> near_;
  std::vector<std::uint32_t> ends_;
};

// By dynamic programming over subsets for each bandwidth from the greatest down: the first one for
// which any allowed set has a ring decides objective 1.
inline std::optional<Best> best_by_subsets(const NodeTopology& node, const Request& request) {
  std::set<std::uint32_t, std::greater<>> bandwidths = {0};
  for (std::size_t a = 0; a < node.gpu_count(); ++a)
    for (std::size_t b = 0; b < a; ++b) bandwidths.insert(node.link(a, b).bandwidth_mb_s);
  const Grades grades(node);
  for (const std::uint32_t mb_s : bandwidths) {
    const RingSets rings(node, mb_s);
    std::optional<Best> best;
    for_each_set(request, [&](GpuSet set) {
      if (!rings.has(set.bits()) || !allowed(node, request, listed(set))) return;
      // The costly objectives only where the cheap ones do not decide.
      Request blind = request;
      blind.free = set;
      Rating r = rating(node, grades, blind, set, request.count > 1 ? mb_s : 0);
      if (best) {
        const auto ahead = [](const Rating& x) {
          return std::tuple(x.pairs_mb_s, x.nic_nearness, x.same_numa_pairs);
        };
        if (ahead(r) < ahead(best->rating)) return;
      }
      r.whole = grades.whole(listed(request.free - set));
      if (!best || r > best->rating) best = Best{set, r};
    });
    if (best) return best;
  }
  return std::nullopt;
}

}  // namespace aliquot::topology::oracle
