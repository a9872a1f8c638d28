#include "topology/shape.h"

#include <algorithm>
#include <cassert>
#include <tuple>

namespace aliquot::topology {
namespace {

using model::Link;
using model::LinkKind;
using model::NodeTopology;

std::vector<Pair> pairs_of(const NodeTopology& node) {
  const std::size_t n = node.gpu_count();
  std::uint32_t greatest_weight = 0;
  for (std::size_t a = 0; a < n; ++a)
    for (std::size_t b = 0; b < a; ++b)
      if (node.link(a, b).kind == LinkKind::kWeight)
        greatest_weight = std::max(greatest_weight, node.link(a, b).bandwidth_mb_s);

  std::vector<Pair> pairs(n * n);
  for (std::size_t a = 0; a < n; ++a)
    for (std::size_t b = 0; b < n; ++b) {
      if (a == b) continue;
      const Link& link = node.link(a, b);
      Pair& pair = pairs[a * n + b];
      pair.mb_s = link.bandwidth_mb_s;
      pair.latency_ns = link.latency_ns;
      pair.same_numa = node.same_numa(a, b);
      pair.linked = link.is_nvlink() || link.kind == LinkKind::kC2c ||
                    (link.kind == LinkKind::kWeight && link.bandwidth_mb_s == greatest_weight);
      // Some boards print SYS for all pairs although the affinities tell two nodes apart.
      if (link.kind == LinkKind::kSys && pair.same_numa)
        pair.latency_ns = std::min(pair.latency_ns, model::path_link(LinkKind::kNode).latency_ns);
    }
  return pairs;
}

unsigned nearness_of(LinkKind kind) {
  switch (kind) {
    case LinkKind::kPix:
      return 4;
    case LinkKind::kPxb:
      return 3;
    case LinkKind::kPhb:
      return 2;
    case LinkKind::kNode:
      return 1;
    default:
      return 0;
  }
}

std::vector<unsigned> nic_nearness_of(const NodeTopology& node) {
  std::vector<unsigned> nearness(node.gpu_count(), 0);
  for (std::size_t gpu = 0; gpu < node.gpu_count(); ++gpu)
    for (std::size_t nic = 0; nic < node.nic_count(); ++nic)
      nearness[gpu] = std::max(nearness[gpu], nearness_of(node.nic_link(gpu, nic).kind));
  return nearness;
}

}  // namespace

Result<Shape> Shape::of(const NodeTopology& node) {
  if (node.gpu_count() == 0) return Error{Errc::kInvalid, "this node has no GPU"};
  if (node.gpu_count() > kMostGpus)
    return Error{Errc::kInvalid, "this node has " + std::to_string(node.gpu_count()) +
                                     " GPUs; the exact search takes up to " +
                                     std::to_string(kMostGpus)};
  Shape shape;
  shape.size_ = static_cast<unsigned>(node.gpu_count());
  shape.pairs_ = pairs_of(node);
  shape.nic_nearness_ = nic_nearness_of(node);
  shape.grade_bandwidths();
  shape.find_rings();
  shape.sum_pairs();
  shape.value_wholes();
  return shape;
}

void Shape::grade_bandwidths() {
  levels_ = {0};
  for (unsigned a = 0; a < size_; ++a)
    for (unsigned b = 0; b < a; ++b) levels_.push_back(pair(a, b).mb_s);
  std::sort(levels_.begin(), levels_.end());
  levels_.erase(std::unique(levels_.begin(), levels_.end()), levels_.end());
  // 120 pairs at most, so a level fits a byte.
  for (unsigned a = 0; a < size_; ++a)
    for (unsigned b = 0; b < size_; ++b) {
      const auto at = std::lower_bound(levels_.begin(), levels_.end(), pair(a, b).mb_s);
      pair_level_[a][b] = static_cast<std::uint8_t>(at - levels_.begin());
    }
}

void Shape::find_rings() {
  const std::uint32_t sets = 1u << size_;
  path_level_.assign(sets, {});
  ring_level_.assign(sets, 0);
  for (std::uint32_t bits = 1; bits < sets; ++bits) {
    const GpuSet set = GpuSet::from_bits(bits);
    const unsigned start = set.lowest();
    PathLevels& paths = path_level_[bits];
    if (set.size() == 1) {
      paths[start] = 255;  // the empty path: as wide as any
      continue;
    }
    for (const unsigned end : set) {
      if (end == start) continue;
      const PathLevels& before = path_level_[bits & ~(1u << end)];
      const PathLevels& hop = pair_level_[end];
      std::uint8_t widest = 0;
      for (unsigned i = 0; i < kMostGpus; ++i)  // all lanes: GPUs outside the set hold 0
        widest = std::max(widest, std::min(before[i], hop[i]));
      paths[end] = widest;
    }
    std::uint8_t ring = 0;
    for (const unsigned end : set)
      if (end != start) ring = std::max(ring, std::min(paths[end], level(end, start)));
    ring_level_[bits] = ring;
  }
}

void Shape::sum_pairs() {
  const std::uint32_t sets = 1u << size_;
  pairs_mb_s_.assign(sets, 0);
  latency_ns_.assign(sets, 0);
  for (std::uint32_t bits = 1; bits < sets; ++bits) {
    const GpuSet set = GpuSet::from_bits(bits);
    const unsigned first = set.lowest();
    const GpuSet rest = set - GpuSet{first};
    pairs_mb_s_[bits] = pairs_mb_s_[rest.bits()];
    latency_ns_[bits] = latency_ns_[rest.bits()];
    for (const unsigned other : rest) {
      pairs_mb_s_[bits] += pair(first, other).mb_s;
      latency_ns_[bits] += pair(first, other).latency_ns;
    }
  }
}

void Shape::value_wholes() {
  const auto quality = [&](unsigned a, unsigned b) {
    const Pair& p = pair(a, b);
    return std::tuple(p.mb_s, p.same_numa, ~p.latency_ns);
  };
  std::vector<decltype(quality(0, 0))> grades;
  for (unsigned a = 0; a < size_; ++a)
    for (unsigned b = 0; b < a; ++b) grades.push_back(quality(a, b));
  std::sort(grades.begin(), grades.end());
  grades.erase(std::unique(grades.begin(), grades.end()), grades.end());
  std::array<std::array<std::uint8_t, kMostGpus>, kMostGpus> grade{};
  for (unsigned a = 0; a < size_; ++a)
    for (unsigned b = 0; b < size_; ++b)
      if (a != b)
        grade[a][b] = static_cast<std::uint8_t>(
            std::lower_bound(grades.begin(), grades.end(), quality(a, b)) - grades.begin());

  const std::uint32_t sets = 1u << size_;
  std::vector<std::uint8_t> worst(sets, 255);
  whole_.assign(sets, 0);
  for (std::uint32_t bits = 1; bits < sets; ++bits) {
    const GpuSet set = GpuSet::from_bits(bits);
    const GpuSet rest = set - GpuSet{set.lowest()};
    worst[bits] = worst[rest.bits()];
    for (const unsigned other : rest)
      worst[bits] = std::min(worst[bits], grade[set.lowest()][other]);
    if (!rest.empty()) whole_[bits] = std::uint64_t{worst[bits]} << 2 * (set.size() - 2);
  }
  // Sums over all subsets, one GPU at a time.
  for (unsigned gpu = 0; gpu < size_; ++gpu)
    for (std::uint32_t bits = 0; bits < sets; ++bits)
      if ((bits >> gpu & 1) != 0) whole_[bits] += whole_[bits ^ 1u << gpu];
}

unsigned Shape::nic_nearness(GpuSet set) const {
  unsigned sum = 0;
  for (const unsigned gpu : set) sum += nic_nearness_[gpu];
  return sum;
}

unsigned Shape::same_numa_pairs(GpuSet set) const {
  unsigned count = 0;
  for (const unsigned a : set)
    for (const unsigned b : set)
      if (a < b && pair(a, b).same_numa) ++count;
  return count;
}

bool Shape::is_clique(GpuSet set) const {
  for (const unsigned a : set)
    for (const unsigned b : set)
      if (a < b && !pair(a, b).linked) return false;
  return true;
}

bool Shape::in_one_numa_node(GpuSet set) const {
  return same_numa_pairs(set) == set.size() * (set.size() - 1) / 2;
}

std::vector<unsigned> Shape::best_ring(GpuSet set) const {
  std::vector<unsigned> ring;
  if (set.empty()) return ring;
  const unsigned start = set.lowest();
  unsigned next = start;  // the GPU behind the one looked for
  const std::uint8_t needed = set.size() < 2 ? 0 : ring_level_[set.bits()];
  while (set.size() > 1) {
    // From the highest index down, so that a ring free in its order reads 0-1-2-3.
    for (unsigned end = size_ - 1; end > start; --end) {
      if (!set.contains(end) || std::min(path_level_[set.bits()][end], level(end, next)) < needed)
        continue;
      ring.push_back(end);
      set.erase(end);
      next = end;
      break;
    }
  }
  ring.push_back(start);
  std::reverse(ring.begin(), ring.end());
  return ring;
}

std::string shape_key(const NodeTopology& node) {
  const std::vector<Pair> pairs = pairs_of(node);
  const std::size_t n = node.gpu_count();
  std::string key = std::to_string(n) + ":";
  for (std::size_t a = 0; a < n; ++a)
    for (std::size_t b = 0; b < a; ++b) {
      const Pair& pair = pairs[a * n + b];
      key += std::to_string(pair.mb_s) + "," + std::to_string(pair.latency_ns) +
             (pair.linked ? "l" : "") + (pair.same_numa ? "n" : "") + ";";
    }
  for (const unsigned nearness : nic_nearness_of(node)) key += std::to_string(nearness);
  return key;
}

}  // namespace aliquot::topology
