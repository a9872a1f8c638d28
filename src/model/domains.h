// Where a host lies among others, as the sources tell it: a path of domains, labels, or Volcano's
// HyperNodes. What tree they make is room topology's matter.
//
// Values; no thread rules.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace aliquot::model {

// A host and the domains it lies in, outermost first: {"n17", {"core", "spine-1", "leaf-4"}}.
struct HostPath {
  std::string host;
  std::vector<std::string> domains;
  bool operator==(const HostPath&) const = default;
};

using Labels = std::map<std::string, std::string>;

struct LabelledHost {
  std::string name;
  Labels labels;
  bool operator==(const LabelledHost&) const = default;
};

// A member of a HyperNode: a host or another HyperNode, by exactly one of the three.
struct HyperMember {
  bool is_host = true;
  std::string name;     // exact
  std::string pattern;  // a regular expression that some part of the name matches
  Labels labels;        // of hosts: all of these
  bool operator==(const HyperMember&) const = default;
};

struct HyperNode {
  std::string name;
  int tier = 1;  // lower is nearer
  std::vector<HyperMember> members;
  bool operator==(const HyperNode&) const = default;
};

}  // namespace aliquot::model
