#include "scheduler/domains.h"

#include <algorithm>
#include <map>

namespace aliquot::scheduler {

DomainTree::DomainTree(const Snapshot& snapshot) : domains_(1) {
  std::map<std::string, std::size_t> known;
  for (NodeId node = 0; node < snapshot.size(); ++node) {
    std::size_t parent = 0;
    std::string path;
    domains_[0].nodes.push_back(node);
    for (const std::string& name : snapshot.spec(node).domains) {
      path += (path.empty() ? "" : "/") + name;
      const auto [found, is_new] = known.try_emplace(path, domains_.size());
      if (is_new) {
        domains_[parent].children.push_back(domains_.size());
        domains_.push_back({path, domains_[parent].level + 1, {}, {}});
        deepest_ = std::max(deepest_, domains_.back().level);
      }
      parent = found->second;
      domains_[parent].nodes.push_back(node);
    }
  }
}

std::vector<std::size_t> DomainTree::at_level(std::size_t level) const {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < domains_.size(); ++i)
    if (domains_[i].level == level) found.push_back(i);
  return found;
}

}  // namespace aliquot::scheduler
