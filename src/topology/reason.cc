#include "topology/reason.h"

#include <algorithm>
#include <map>
#include <vector>

namespace aliquot::topology {
namespace {

using model::Link;
using model::LinkKind;
using model::NodeTopology;

std::string counted(std::size_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

// What two or more GPUs with only this link between them do.
std::string sharing(const Link& link, bool same_numa) {
  switch (link.kind) {
    case LinkKind::kNvlink:
      return "share " + counted(link.nvlinks, "NVLink") + " each way";
    case LinkKind::kNvswitch:
      return "share " + counted(link.nvlinks, "NVLink") + " each way through NVSwitch";
    case LinkKind::kC2c:
      return "share a chip-to-chip link";
    case LinkKind::kPix:
      return "lie under one PCIe switch";
    case LinkKind::kPxb:
      return "lie under one PCIe root port";
    case LinkKind::kPhb:
      return "lie under one PCIe host bridge";
    case LinkKind::kNode:
      return "lie in one NUMA node";
    case LinkKind::kSys:
      return same_numa ? "lie in one NUMA node" : "meet across NUMA nodes";
    default:
      return "share " + model::gb_s_text(link.bandwidth_mb_s) + " GB/s";
  }
}

// The links inside a set, in words, and how often each occurs.
std::string links_inside(const NodeTopology& node, const Shape& shape, GpuSet set) {
  std::map<std::string, std::size_t> kinds;
  std::size_t pairs = 0;
  std::size_t linked = 0;
  Link last;
  for (const unsigned a : set)
    for (const unsigned b : set) {
      if (a >= b) continue;
      last = node.link(a, b);
      ++kinds[model::link_text(last)];
      ++pairs;
      if (shape.pair(a, b).linked) ++linked;
    }
  const std::string who = gpu_set_text(set);
  if (kinds.size() == 1) return who + " " + sharing(last, shape.in_one_numa_node(set));
  const bool weights = last.kind == LinkKind::kWeight;
  std::string list;
  for (const auto& [kind, count] : kinds)
    list += (list.empty() ? "" : ", ") + std::to_string(count) + (weights ? " of " : " ") + kind;
  if (weights) return "pairs of " + who + ": " + list + " GB/s";
  if (linked == 0) return who + " meet by PCIe (" + list + ")";
  if (linked == pairs) return who + " are joined pairwise by NVLink (" + list + ")";
  return std::to_string(linked) + " of " + std::to_string(pairs) + " pairs of " + who +
         " are joined by NVLink (" + list + ")";
}

std::string ring_words(const Shape& shape, GpuSet set) {
  const std::string speed = model::gb_s_text(shape.ring_mb_s(set)) + " GB/s";
  if (set.size() == 2) return "pair " + speed;
  std::string order;
  for (const unsigned gpu : shape.best_ring(set))
    order += (order.empty() ? "" : "-") + std::to_string(gpu);
  return "ring " + order + " " + speed;
}

// The largest group of linked GPUs in a set, the first one of that size.
GpuSet largest_clique(const Shape& shape, GpuSet set) {
  GpuSet largest;
  for (std::uint32_t bits = set.bits(); bits != 0; bits = (bits - 1) & set.bits()) {
    const GpuSet group = GpuSet::from_bits(bits);
    if (group.size() < 2 || group.size() < largest.size() || !shape.is_clique(group)) continue;
    if (group.size() > largest.size() || is_before(group, largest)) largest = group;
  }
  return largest;
}

struct Rivals {
  std::size_t candidates = 0;  // sets that satisfy the request, the chosen one too
  std::size_t equal = 0;       // others that are as fast and as near
  bool fewer_whole = false;    // all of those leave less whole
  GpuSet apart;                // the best of those without a GPU in common
};

Rivals rivals_of(const Shape& shape, const Request& request, GpuSet chosen) {
  const auto before_whole = [](Rating rating) {
    rating.whole = 0;
    rating.latency_ns = 0;
    return rating;
  };
  const Rating best = rating_of(shape, request, chosen);
  Rivals rivals;
  rivals.fewer_whole = true;
  Rating best_apart;
  for (std::uint32_t bits = request.free.bits(); bits != 0;
       bits = (bits - 1) & request.free.bits()) {
    const GpuSet set = GpuSet::from_bits(bits);
    if (set.size() != request.count || !satisfies(shape, request, set)) continue;
    ++rivals.candidates;
    const Rating rating = rating_of(shape, request, set);
    if (set == chosen || before_whole(rating) != before_whole(best)) continue;
    ++rivals.equal;
    if (rating.whole == best.whole) rivals.fewer_whole = false;
    if (!(set & chosen).empty()) continue;
    const auto order = rating <=> best_apart;
    if (!rivals.apart.empty() && (order < 0 || (order == 0 && is_before(rivals.apart, set))))
      continue;
    rivals.apart = set;
    best_apart = rating;
  }
  return rivals;
}

bool all_pairs_equal(const Shape& shape) {
  for (unsigned a = 0; a < shape.size(); ++a)
    for (unsigned b = 0; b < a; ++b)
      if (shape.pair(a, b).mb_s != shape.pair(1, 0).mb_s ||
          shape.pair(a, b).latency_ns != shape.pair(1, 0).latency_ns)
        return false;
  return true;
}

std::string rival_words(const Shape& shape, const Request& request, GpuSet chosen) {
  const Rivals rivals = rivals_of(shape, request, chosen);
  if (rivals.candidates == 1) return "the only choice";
  if (request.count == 1) {
    const GpuSet kept = largest_clique(shape, request.free - chosen);
    const std::string keeps = kept.empty() ? "" : "; " + gpu_set_text(kept) + " kept whole";
    return (rivals.fewer_whole ? "its loss harms later jobs least" : "no other harms less") + keeps;
  }
  if (all_pairs_equal(shape))
    return "all pairs of this node are equal, so no choice is faster than another";
  if (rivals.equal == 0) return "no other choice is as fast";
  if (!rivals.apart.empty()) return gpu_set_text(rivals.apart) + " equal, kept whole";
  return counted(rivals.equal, "other choice") + " equal" +
         (rivals.fewer_whole ? ", this leaves most whole" : "");
}

std::string nearest_nics(const NodeTopology& node, GpuSet set) {
  if (node.nic_count() == 0) return "no NIC known";
  std::string text;
  for (const unsigned gpu : set) {
    std::size_t nearest = 0;
    for (std::size_t nic = 1; nic < node.nic_count(); ++nic)
      if (node.nic_link(gpu, nic).kind < node.nic_link(gpu, nearest).kind) nearest = nic;
    text += (text.empty() ? "nearest NICs " : ", ") + std::to_string(gpu) + ": " +
            node.nics()[nearest].name + " " + model::link_text(node.nic_link(gpu, nearest));
  }
  return text;
}

std::string numa_words(const NodeTopology& node, GpuSet set) {
  std::map<int, GpuSet> nodes;
  for (const unsigned gpu : set) nodes[node.gpus()[gpu].numa.value_or(-1)].insert(gpu);
  std::string text;
  for (const auto& [numa, gpus] : nodes)
    text += (text.empty() ? "" : ", ") + gpu_set_text(gpus) + " in NUMA node " +
            (numa < 0 ? "unknown" : std::to_string(numa));
  return text;
}

}  // namespace

std::string reason_for(const NodeTopology& node, const Shape& shape, const Request& request,
                       GpuSet chosen) {
  std::string text = chosen.size() == 1
                         ? "GPU " + gpu_set_text(chosen)
                         : links_inside(node, shape, chosen) + ", " + ring_words(shape, chosen);
  if (request.near_nics) text += "; " + nearest_nics(node, chosen);
  if (request.near_numa || request.one_numa_node) text += "; " + numa_words(node, chosen);
  const std::string rivals = rival_words(shape, request, chosen);
  return text + (chosen.size() == 1 ? ": " : "; ") + rivals;
}

}  // namespace aliquot::topology
