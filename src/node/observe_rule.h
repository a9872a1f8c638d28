// ObserveRule: whose limits of memory are only watched: what would have been refused is counted,
// and nothing is refused. For rolling limits out gradually; an administrator's word, never a pod's
// own. A value; any thread.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

namespace aliquot::node {

struct ObserveRule {
  bool all = false;                // of this node
  std::vector<std::string> names;  // "NAMESPACE" or "NAMESPACE/POD"

  bool covers(const std::string& name_space, const std::string& pod) const {
    return all || std::ranges::any_of(names, [&](const std::string& name) {
             return name == name_space || name == name_space + "/" + pod;
           });
  }
  bool operator==(const ObserveRule&) const = default;
};

}  // namespace aliquot::node
