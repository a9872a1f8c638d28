#include "topology/domains.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

namespace aliquot::topology {
namespace {

// Outermost first; the first family of which any label occurs is taken.
const std::array<std::vector<std::string>, 2> kLabelFamilies = {
    std::vector<std::string>{"fabric.topograph.run/tier-3", "fabric.topograph.run/tier-2",
                             "fabric.topograph.run/tier-1", "fabric.topograph.run/tier-0",
                             "accelerator.topograph.run/domain",
                             "accelerator.topograph.run/sub-domain"},
    std::vector<std::string>{
        "network.topology.nvidia.com/datacenter", "network.topology.nvidia.com/spine",
        "network.topology.nvidia.com/block", "network.topology.nvidia.com/accelerator"}};

}  // namespace

DomainTree DomainTree::of(std::span<const HostPath> paths) {
  DomainTree tree;
  tree.domains_.resize(1);
  std::map<std::pair<std::size_t, std::string>, std::size_t> known;
  for (std::size_t host = 0; host < paths.size(); ++host) {
    std::size_t at = kRoot;
    tree.domains_[kRoot].hosts.push_back(static_cast<std::uint32_t>(host));
    for (const std::string& name : paths[host].domains) {
      const auto [found, is_new] = known.try_emplace({at, name}, tree.domains_.size());
      if (is_new) {
        const Domain& parent = tree.domains_[at];
        Domain made{
            parent.path.empty() ? name : parent.path + "/" + name, parent.level + 1, at, {}, {}};
        tree.deepest_ = std::max(tree.deepest_, made.level);
        tree.domains_[at].children.push_back(found->second);
        tree.domains_.push_back(std::move(made));
      }
      at = found->second;
      tree.domains_[at].hosts.push_back(static_cast<std::uint32_t>(host));
    }
  }
  return tree;
}

std::vector<std::size_t> DomainTree::at_level(std::size_t level) const {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < domains_.size(); ++i)
    if (domains_[i].level == level) found.push_back(i);
  return found;
}

std::vector<std::string> known_levels(const Labels& labels) {
  for (const std::vector<std::string>& family : kLabelFamilies) {
    std::vector<std::string> levels;
    for (const std::string& label : family)
      if (labels.contains(label)) levels.push_back(label);
    if (!levels.empty()) return levels;
  }
  return {};
}

HostPath path_by_labels(std::string host, const Labels& labels,
                        std::span<const std::string> levels) {
  HostPath path{std::move(host), {}};
  for (const std::string& level : levels) {
    const auto label = labels.find(level);
    if (label == labels.end()) break;
    path.domains.push_back(label->second);
  }
  return path;
}

}  // namespace aliquot::topology
