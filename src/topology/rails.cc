#include "topology/rails.h"

#include <algorithm>
#include <bit>
#include <map>

namespace aliquot::topology {

using model::GpuSet;

Rails::Rails(const model::NodeTopology& node) : ways_(node.gpu_count()), gpus_(node.gpu_count()) {
  const auto nics = static_cast<unsigned>(std::min<std::size_t>(node.nic_count(), kNone));
  for (std::size_t gpu = 0; gpu < gpus_; ++gpu)
    for (unsigned nic = 0; nic < nics; ++nic) {
      const model::LinkKind kind = node.nic_link(gpu, nic).kind;
      if (ways_[gpu].nic == kNone || kind < ways_[gpu].kind) ways_[gpu] = {nic, kind};
    }
}

RailSet Rails::of(GpuSet gpus) const {
  RailSet rails = 0;
  for (const unsigned gpu : gpus)
    if (ways_[gpu].nic != kNone) rails |= RailSet{1} << ways_[gpu].nic;
  return rails;
}

GpuSet Rails::behind(RailSet rails) const {
  GpuSet gpus;
  for (unsigned gpu = 0; gpu < gpus_; ++gpu)
    if (ways_[gpu].nic != kNone && (rails >> ways_[gpu].nic & 1) != 0) gpus.insert(gpu);
  return gpus;
}

Traffic Rails::traffic(const Fabric& fabric, GpuSet gpus) const {
  std::map<unsigned, unsigned> speaker;  // by NIC
  for (const unsigned gpu : gpus) {
    if (ways_[gpu].nic == kNone) continue;
    const auto [found, is_new] = speaker.try_emplace(ways_[gpu].nic, gpu);
    if (!is_new && ways_[gpu].kind < ways_[found->second].kind) found->second = gpu;
  }
  std::map<std::size_t, unsigned> times;
  Traffic all;
  for (const auto& [nic, gpu] : speaker)
    for (const Traffic& flow : {fabric.flow(gpu, gpus_ + nic), fabric.flow(gpus_ + nic, gpu)}) {
      for (const Traffic::Use& use : flow.uses) times[use.wire] += use.times;
      all.most_mb_s = std::min(all.most_mb_s, flow.most_mb_s);
    }
  for (const auto& [wire, count] : times) all.uses.push_back({wire, count});
  return all;
}

double rails_worth(RailSet here, RailSet there, bool one_leaf) {
  const int both = std::min(std::popcount(here), std::popcount(there));
  const int common = one_leaf ? std::popcount(here & there) : 0;
  return common + kSpineShare * (both - common);
}

}  // namespace aliquot::topology
