// What Aliquot reads of a node object, and the patches of its status that it sends. Values; any
// thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"
#include "format/json.h"
#include "kube/object.h"

namespace aliquot::kube {

struct Condition {
  std::string type;
  std::string status;  // "True", "False", "Unknown"
  std::string reason;  // CamelCase, for programs
  std::string message;
  bool operator==(const Condition&) const = default;
};

struct Taint {
  std::string key;
  std::string value;
  std::string effect;
  bool operator==(const Taint&) const = default;
};

struct Node {
  std::string name;
  std::string uid;
  std::string resource_version;
  TextMap annotations;
  TextMap labels;
  TextMap capacity;
  TextMap allocatable;
  std::vector<Condition> conditions;
  std::vector<Taint> taints;

  const Condition* condition(std::string_view type) const;
  bool operator==(const Node&) const = default;
};

Result<Node> parse_node(const format::Json& object);

// A strategic merge patch of a node's status that sets one condition and leaves the others alone.
// `now` and `since` are RFC 3339; since: when it last went from one status to another.
struct ConditionTimes {
  std::string now;
  std::string since;
};
format::Json condition_patch(const Condition& condition, const ConditionTimes& times);

}  // namespace aliquot::kube
