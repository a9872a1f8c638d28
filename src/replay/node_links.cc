#include "replay/node_links.h"

#include <algorithm>
#include <map>
#include <utility>

namespace aliquot::replay {

using model::GpuSet;
using topology::Traffic;

Result<NodeLinks> NodeLinks::of(const model::NodeTopology& node) {
  Result<topology::Shape> shape = topology::Shape::of(node);
  if (!shape) return shape.error();
  return NodeLinks(node, *std::move(shape));
}

NodeLinks::NodeLinks(const model::NodeTopology& node, topology::Shape shape)
    : shape_(std::move(shape)),
      fabric_(node),
      gpus_(node.gpu_count()),
      rail_of_(node.gpu_count(), kNoRail) {
  for (std::size_t gpu = 0; gpu < gpus_; ++gpu)
    for (std::size_t nic = 0; nic < node.nic_count(); ++nic) {
      std::size_t& rail = rail_of_[gpu];
      if (rail == kNoRail || node.nic_link(gpu, nic).kind < node.link(gpu, rail).kind)
        rail = gpus_ + nic;
    }
  for (unsigned a = 0; a < gpus_; ++a)
    for (unsigned b = 0; b < a; ++b)
      all_equal_ = all_equal_ && shape_.pair(a, b).mb_s == shape_.pair(0, 1).mb_s;
}

const Traffic& NodeLinks::ring(GpuSet set) {
  const auto [found, is_new] = rings_.try_emplace(set.bits());
  if (is_new && set.size() > 1) found->second = fabric_.ring(shape_.best_ring(set));
  return found->second;
}

std::vector<std::size_t> NodeLinks::rails(GpuSet set) const {
  std::vector<std::size_t> rails;
  for (const unsigned gpu : set)
    if (rail_of_[gpu] != kNoRail) rails.push_back(rail_of_[gpu]);
  std::ranges::sort(rails);
  rails.erase(std::ranges::unique(rails).begin(), rails.end());
  return rails;
}

Traffic NodeLinks::over_rails(GpuSet set) const {
  std::map<std::size_t, unsigned> times;
  std::vector<std::size_t> done;
  Traffic all;
  for (const unsigned gpu : set) {
    const std::size_t nic = rail_of_[gpu];
    if (nic == kNoRail || std::ranges::find(done, nic) != done.end()) continue;
    done.push_back(nic);  // the first GPU behind it speaks for the others
    for (const Traffic& flow : {fabric_.flow(gpu, nic), fabric_.flow(nic, gpu)}) {
      for (const Traffic::Use& use : flow.uses) times[use.wire] += use.times;
      all.most_mb_s = std::min(all.most_mb_s, flow.most_mb_s);
    }
  }
  for (const auto& [wire, count] : times) all.uses.push_back({wire, count});
  return all;
}

}  // namespace aliquot::replay
