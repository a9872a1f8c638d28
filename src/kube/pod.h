// What Aliquot reads of a pod: who it is, what it asks for, what became of its containers. A view:
// the rest of the object stays where it came from.
//
// Leaves to others: fetching (pod_source.h, api_client.h) and what its annotations mean
// (assignment.h). Values; any thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"
#include "format/json.h"

namespace aliquot::kube {

enum class ContainerKind : std::uint8_t {
  kApp,
  kInit,     // runs to its end before the next one
  kSidecar,  // an init container that stays (restartPolicy Always)
};

enum class ContainerState : std::uint8_t { kUnknown, kWaiting, kRunning, kTerminated };

// Devices as kubelet reports them (status.containerStatuses[].allocatedResourcesStatus; on by
// default from 1.36). Empty where the kubelet does not say.
struct DeviceStatus {
  std::string resource;  // "aliquot.dev/gpu"
  std::string id;
  std::string health;  // "Healthy", "Unhealthy", "Unknown"
  bool operator==(const DeviceStatus&) const = default;
};

struct Container {
  std::string name;
  ContainerKind kind = ContainerKind::kApp;
  std::string image;
  std::map<std::string, std::string, std::less<>> limits;  // quantities as written: "1", "4Gi"

  // From the pod's status; kUnknown until kubelet has written one.
  ContainerState state = ContainerState::kUnknown;
  std::int64_t exit_code = 0;  // when terminated
  std::string runtime_id;      // "containerd://0123..."; empty before the first start
  std::int64_t restarts = 0;
  std::vector<DeviceStatus> devices;

  // The whole number under limits, 0 where there is none or it is no whole number.
  std::int64_t limit(std::string_view resource) const;
  bool operator==(const Container&) const = default;
};

enum class PodPhase : std::uint8_t { kUnknown, kPending, kRunning, kSucceeded, kFailed };

struct Pod {
  std::string name_space;
  std::string name;
  std::string uid;
  std::string resource_version;  // empty from kubelet's own list
  std::string node;
  std::map<std::string, std::string, std::less<>> annotations;
  std::map<std::string, std::string, std::less<>> labels;
  PodPhase phase = PodPhase::kUnknown;
  bool deleting = false;              // has a deletion timestamp; its containers may still run
  std::vector<Container> containers;  // init containers and sidecars first, in their order

  bool finished() const { return phase == PodPhase::kSucceeded || phase == PodPhase::kFailed; }
  const std::string* annotation(std::string_view key) const;
  const Container* container(std::string_view wanted) const;
  // "namespace/name".
  std::string full_name() const { return name_space + "/" + name; }
  // The id in its containers' cgroup paths: a static pod's is not the uid of its mirror in the API.
  const std::string& cgroup_uid() const;
  bool operator==(const Pod&) const = default;
};

// Fails where an object without a name, namespace or uid was sent, or a field has another type than
// Kubernetes gives it. Unknown fields are ignored: the API grows.
Result<Pod> parse_pod(const format::Json& object);

// "default", "kubelet-1/web-0" and so on are refused: exactly "namespace/name".
struct PodName {
  std::string name_space;
  std::string name;
  bool operator==(const PodName&) const = default;
  auto operator<=>(const PodName&) const = default;
};
Result<PodName> parse_pod_name(std::string_view text);

}  // namespace aliquot::kube
