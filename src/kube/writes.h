// What the node agent writes to the API server: Events, one condition and one taint of its node,
// and Bindings. Each is one call that may be repeated without harm.
//
// Leaves to others: when and why. Any thread; they block for as long as the client's deadline.
#pragma once

#include <cstdint>
#include <ctime>
#include <string>
#include <string_view>

#include "common/result.h"
#include "kube/api_client.h"
#include "kube/node.h"
#include "kube/pod.h"

namespace aliquot::kube {

// "2026-01-02T03:04:05Z".
std::string rfc3339(std::time_t time);

enum class EventKind : std::uint8_t { kNormal, kWarning };

// Whom an event is about.
struct EventTarget {
  std::string kind;        // "Pod", "Node"
  std::string name_space;  // empty for a node: its events lie in "default"
  std::string name;
  std::string uid;
};
EventTarget event_target(const Pod& pod);
EventTarget event_target(const Node& node);

struct Event {
  EventTarget target;
  EventKind kind = EventKind::kWarning;
  std::string reason;   // CamelCase, stable: "ShareRefused"
  std::string message;  // at most 1,024 bytes are kept, the server's own limit
  std::string reporter = "aliquotd";
};

// The same event again raises the count of the one that is there.
Status post_event(ApiClient& client, const Event& event, std::time_t now);

// Its lastTransitionTime moves only when the status changes.
Status set_condition(ApiClient& client, std::string_view node, const Condition& condition,
                     std::time_t now);

enum class TaintIs : std::uint8_t { kSet, kCleared };
// Leaves other taints alone: repeats where somebody else changed the node in between.
Status set_taint(ApiClient& client, std::string_view node, const Taint& taint, TaintIs wanted);

// Puts the pod on the node and writes the annotations, in one step that happens wholly or not at
// all. kInvalid: the pod is bound already, or is another one of that name.
Status bind(ApiClient& client, const Pod& pod, std::string_view node, const TextMap& annotations);

}  // namespace aliquot::kube
