#include "kube/node.h"

#include <algorithm>

namespace aliquot::kube {

using format::Json;

const Condition* Node::condition(std::string_view type) const {
  const auto at = std::ranges::find(conditions, type, &Condition::type);
  return at == conditions.end() ? nullptr : &*at;
}

Result<Node> parse_node(const Json& object) {
  ObjectReader reader(object, "node");
  Node node;
  node.name = reader.text({"metadata", "name"});
  node.uid = reader.text({"metadata", "uid"});
  node.resource_version = reader.text({"metadata", "resourceVersion"});
  node.annotations = reader.texts({"metadata", "annotations"});
  node.labels = reader.texts({"metadata", "labels"});
  node.capacity = reader.texts({"status", "capacity"});
  node.allocatable = reader.texts({"status", "allocatable"});
  for (const Json& item : reader.list({"status", "conditions"})) {
    ObjectReader condition(item, "condition of node " + node.name);
    node.conditions.push_back({condition.text({"type"}), condition.text({"status"}),
                               condition.text({"reason"}), condition.text({"message"})});
  }
  for (const Json& item : reader.list({"spec", "taints"})) {
    ObjectReader taint(item, "taint of node " + node.name);
    node.taints.push_back({taint.text({"key"}), taint.text({"value"}), taint.text({"effect"})});
  }
  if (const Status read = reader.done(); !read) return read.error();
  if (node.name.empty()) return Error{Errc::kInvalid, "a node without a name"};
  return node;
}

Json condition_patch(const Condition& condition, const ConditionTimes& times) {
  Json entry = Json::object();
  entry.set("type", condition.type)
      .set("status", condition.status)
      .set("reason", condition.reason)
      .set("message", condition.message)
      .set("lastHeartbeatTime", times.now)
      .set("lastTransitionTime", times.since);
  Json status = Json::object();
  status.set("conditions", Json::array().append(std::move(entry)));
  return Json::object().set("status", std::move(status));
}

}  // namespace aliquot::kube
