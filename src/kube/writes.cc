#include "kube/writes.h"

#include <algorithm>
#include <array>

namespace aliquot::kube {

namespace {

using format::Json;

constexpr std::size_t kLongestMessage = 1024;
constexpr int kConflictTries = 5;
constexpr int kConflict = 409;

Json text_object(const TextMap& texts) {
  Json out = Json::object();
  for (const auto& [key, value] : texts) out.set(key, value);
  return out;
}

// FNV-1a: the same event gets the same name, whoever writes it and after whichever restart.
std::string event_name(const Event& event) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const std::string* part :
       {&event.target.kind, &event.target.uid, &event.reason, &event.message})
    for (const char c : *part + '\0') hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  std::string digits;
  for (int shift = 60; shift >= 0; shift -= 4) digits += "0123456789abcdef"[hash >> shift & 15];
  return event.target.name.substr(0, 230) + "." + digits;
}

Json event_object(const Event& event, const std::string& name, const std::string& name_space,
                  const std::string& time) {
  Json target = Json::object();
  target.set("apiVersion", "v1").set("kind", event.target.kind).set("name", event.target.name);
  if (!event.target.name_space.empty()) target.set("namespace", event.target.name_space);
  if (!event.target.uid.empty()) target.set("uid", event.target.uid);
  Json object = Json::object();
  object.set("apiVersion", "v1")
      .set("kind", "Event")
      .set("metadata", Json::object().set("name", name).set("namespace", name_space))
      .set("involvedObject", std::move(target))
      .set("type", event.kind == EventKind::kNormal ? "Normal" : "Warning")
      .set("reason", event.reason)
      .set("message", event.message.substr(0, kLongestMessage))
      .set("source", Json::object().set("component", event.reporter))
      .set("firstTimestamp", time)
      .set("lastTimestamp", time)
      .set("count", 1);
  return object;
}

Error refused(const std::string& what, const Answer& answer) {
  const Errc code = answer.status == 401 || answer.status == 403 ? Errc::kDenied
                    : answer.status == 404                       ? Errc::kNotFound
                    : answer.status < 500                        ? Errc::kInvalid
                                                                 : Errc::kUnavailable;
  return Error{code, what + ": " + std::to_string(answer.status) + " " + answer.reason + ": " +
                         answer.message};
}

std::string node_path(std::string_view node) { return "/api/v1/nodes/" + query_escaped(node); }

}  // namespace

std::string rfc3339(std::time_t time) {
  std::tm parts{};
  gmtime_r(&time, &parts);
  std::array<char, 32> text{};
  const std::size_t size = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return {text.data(), size};
}

EventTarget event_target(const Pod& pod) { return {"Pod", pod.name_space, pod.name, pod.uid}; }

// kubelet's own events name the node as its uid, and that is what `kubectl describe node` looks
// for.
EventTarget event_target(const Node& node) { return {"Node", {}, node.name, node.name}; }

Status post_event(ApiClient& client, const Event& event, std::time_t now) {
  const std::string name_space =
      event.target.name_space.empty() ? "default" : event.target.name_space;
  const std::string name = event_name(event);
  const std::string path = "/api/v1/namespaces/" + query_escaped(name_space) + "/events";
  const std::string time = rfc3339(now);
  const Result<Answer> created = client.send(
      {"POST", path, event_object(event, name, name_space, time).dump(), "application/json", {}});
  if (!created) return created.error();
  if (created->ok()) return {};
  if (created->status != kConflict) return refused("event " + event.reason, *created);
  const std::string one = path + "/" + query_escaped(name);
  const Result<Json> there = client.get(one);
  if (!there) return there.error();
  const std::int64_t count = ObjectReader(*there, one).number({"count"});
  const Result<Json> patched = client.patch(
      one, PatchKind::kMerge, Json::object().set("count", count + 1).set("lastTimestamp", time));
  if (!patched) return patched.error();
  return {};
}

Status set_condition(ApiClient& client, std::string_view node, const Condition& condition,
                     std::time_t now) {
  const Result<Json> object = client.get(node_path(node));
  if (!object) return object.error();
  ConditionTimes times{rfc3339(now), rfc3339(now)};
  ObjectReader reader(*object, "node");
  for (const Json& item : reader.list({"status", "conditions"})) {
    ObjectReader there(item, "condition");
    if (there.text({"type"}) == condition.type && there.text({"status"}) == condition.status)
      times.since = there.text({"lastTransitionTime"});
  }
  if (const Status read = reader.done(); !read) return read;
  const Result<Json> patched = client.patch(node_path(node) + "/status", PatchKind::kStrategic,
                                            condition_patch(condition, times));
  if (!patched) return patched.error();
  return {};
}

Status set_taint(ApiClient& client, std::string_view node, const Taint& taint, TaintIs wanted) {
  for (int attempt = 1;; ++attempt) {
    const Result<Json> object = client.get(node_path(node));
    if (!object) return object.error();
    const Result<Node> now = parse_node(*object);
    if (!now) return now.error();
    std::vector<Taint> taints = now->taints;
    std::erase_if(taints, [&](const Taint& one) {
      return one.key == taint.key && one.effect == taint.effect;
    });
    if (wanted == TaintIs::kSet) taints.push_back(taint);
    if (taints == now->taints) return {};
    Json list = Json::array();
    for (const Taint& one : taints) {
      Json entry = Json::object().set("key", one.key).set("effect", one.effect);
      if (!one.value.empty()) entry.set("value", one.value);
      list.append(std::move(entry));
    }
    Json patch = Json::object();
    // Refused where the node is not as it was read: the list is replaced as a whole.
    patch.set("metadata", Json::object().set("resourceVersion", now->resource_version))
        .set("spec", Json::object().set("taints", std::move(list)));
    const Result<Answer> answer =
        client.send({"PATCH", node_path(node), patch.dump(), "application/merge-patch+json", {}});
    if (!answer) return answer.error();
    if (answer->ok()) return {};
    if (answer->status != kConflict || attempt == kConflictTries)
      return refused("taint " + taint.key + " of node " + std::string(node), *answer);
  }
}

Status bind(ApiClient& client, const Pod& pod, std::string_view node, const TextMap& annotations) {
  Json metadata = Json::object();
  metadata.set("name", pod.name).set("namespace", pod.name_space).set("uid", pod.uid);
  if (!annotations.empty()) metadata.set("annotations", text_object(annotations));
  Json binding = Json::object();
  binding.set("apiVersion", "v1")
      .set("kind", "Binding")
      .set("metadata", std::move(metadata))
      .set("target", Json::object()
                         .set("apiVersion", "v1")
                         .set("kind", "Node")
                         .set("name", std::string(node)));
  const Result<Answer> answer = client.send({"POST",
                                             "/api/v1/namespaces/" + query_escaped(pod.name_space) +
                                                 "/pods/" + query_escaped(pod.name) + "/binding",
                                             binding.dump(),
                                             "application/json",
                                             {}});
  if (!answer) return answer.error();
  if (answer->ok()) return {};
  return refused("bind " + pod.full_name() + " to " + std::string(node), *answer);
}

}  // namespace aliquot::kube
