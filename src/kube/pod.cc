#include "kube/pod.h"

#include <algorithm>
#include <charconv>

#include "kube/object.h"

namespace aliquot::kube {

namespace {

using format::Json;

// Set by kubelet on pods that do not come from the API server; the value is the id that it uses.
constexpr std::string_view kStaticPodHash = "kubernetes.io/config.hash";

PodPhase phase_of(std::string_view text) {
  if (text == "Pending") return PodPhase::kPending;
  if (text == "Running") return PodPhase::kRunning;
  if (text == "Succeeded") return PodPhase::kSucceeded;
  if (text == "Failed") return PodPhase::kFailed;
  return PodPhase::kUnknown;
}

Status read_containers(const Json::Array& items, bool init, Pod& pod) {
  for (const Json& item : items) {
    ObjectReader reader(item, "container of " + pod.full_name());
    Container container;
    container.name = reader.text({"name"});
    container.image = reader.text({"image"});
    container.limits = reader.texts({"resources", "limits"});
    if (init)
      container.kind = reader.text({"restartPolicy"}) == "Always" ? ContainerKind::kSidecar
                                                                  : ContainerKind::kInit;
    if (const Status read = reader.done(); !read) return read.error();
    if (container.name.empty())
      return Error{Errc::kInvalid, pod.full_name() + ": a container without a name"};
    pod.containers.push_back(std::move(container));
  }
  return {};
}

void read_devices(ObjectReader& status, std::vector<DeviceStatus>& out) {
  for (const Json& resource : status.list({"allocatedResourcesStatus"})) {
    ObjectReader reader(resource, "allocatedResourcesStatus");
    const std::string name = reader.text({"name"});
    for (const Json& device : reader.list({"resources"})) {
      ObjectReader fields(device, "allocatedResourcesStatus");
      out.push_back({name, fields.text({"resourceID"}), fields.text({"health"})});
    }
  }
}

Status read_statuses(const Json::Array& items, Pod& pod) {
  for (const Json& item : items) {
    ObjectReader reader(item, "container status of " + pod.full_name());
    const std::string name = reader.text({"name"});
    const auto at = std::ranges::find(pod.containers, name, &Container::name);
    if (at == pod.containers.end()) continue;  // the spec is the truth
    at->runtime_id = reader.text({"containerID"});
    at->restarts = reader.number({"restartCount"});
    at->exit_code = reader.number({"state", "terminated", "exitCode"});
    if (reader.find({"state", "running"}) != nullptr)
      at->state = ContainerState::kRunning;
    else if (reader.find({"state", "terminated"}) != nullptr)
      at->state = ContainerState::kTerminated;
    else if (reader.find({"state", "waiting"}) != nullptr)
      at->state = ContainerState::kWaiting;
    read_devices(reader, at->devices);
    if (const Status read = reader.done(); !read) return read.error();
  }
  return {};
}

}  // namespace

std::int64_t Container::limit(std::string_view resource) const {
  const auto at = limits.find(resource);
  if (at == limits.end()) return 0;
  std::int64_t number = 0;
  const char* const end = at->second.data() + at->second.size();
  const auto [stop, error] = std::from_chars(at->second.data(), end, number);
  return error == std::errc() && stop == end ? number : 0;
}

const std::string* Pod::annotation(std::string_view key) const {
  const auto at = annotations.find(key);
  return at == annotations.end() ? nullptr : &at->second;
}

const Container* Pod::container(std::string_view wanted) const {
  const auto at = std::ranges::find(containers, wanted, &Container::name);
  return at == containers.end() ? nullptr : &*at;
}

const std::string& Pod::cgroup_uid() const {
  const std::string* hash = annotation(kStaticPodHash);
  return hash != nullptr ? *hash : uid;
}

Result<Pod> parse_pod(const Json& object) {
  ObjectReader reader(object, "pod");
  Pod pod;
  pod.name_space = reader.text({"metadata", "namespace"});
  pod.name = reader.text({"metadata", "name"});
  pod.uid = reader.text({"metadata", "uid"});
  pod.resource_version = reader.text({"metadata", "resourceVersion"});
  pod.annotations = reader.texts({"metadata", "annotations"});
  pod.labels = reader.texts({"metadata", "labels"});
  pod.deleting = reader.find({"metadata", "deletionTimestamp"}) != nullptr;
  pod.node = reader.text({"spec", "nodeName"});
  pod.phase = phase_of(reader.text({"status", "phase"}));
  const Json::Array& init = reader.list({"spec", "initContainers"});
  const Json::Array& app = reader.list({"spec", "containers"});
  const Json::Array& init_statuses = reader.list({"status", "initContainerStatuses"});
  const Json::Array& app_statuses = reader.list({"status", "containerStatuses"});
  if (const Status read = reader.done(); !read) return read.error();
  if (pod.name_space.empty() || pod.name.empty() || pod.uid.empty())
    return Error{Errc::kInvalid, "pod '" + pod.full_name() + "' without namespace, name or uid"};
  if (const Status read = read_containers(init, true, pod); !read) return read.error();
  if (const Status read = read_containers(app, false, pod); !read) return read.error();
  if (const Status read = read_statuses(init_statuses, pod); !read) return read.error();
  if (const Status read = read_statuses(app_statuses, pod); !read) return read.error();
  return pod;
}

Result<PodName> parse_pod_name(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos || slash == 0 || slash + 1 == text.size() ||
      text.find('/', slash + 1) != std::string_view::npos)
    return Error{Errc::kInvalid, "pod '" + std::string(text) + "': expected namespace/name"};
  return PodName{std::string(text.substr(0, slash)), std::string(text.substr(slash + 1))};
}

}  // namespace aliquot::kube
