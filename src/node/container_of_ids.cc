#include "node/container_of_ids.h"

#include <algorithm>

namespace aliquot::node {
namespace {

std::vector<std::string> sorted(std::vector<std::string> ids) {
  std::ranges::sort(ids);
  return ids;
}

bool has_any(const HeldDevices& held, const std::vector<std::string>& ids) {
  return std::ranges::any_of(ids, [&](const std::string& id) {
    return std::ranges::find(held.ids, id) != held.ids.end();
  });
}

}  // namespace

Result<PodName> pod_of_ids(const KubeletBook& book, const std::vector<std::string>& ids) {
  const auto holder =
      std::ranges::find_if(book.held, [&](const HeldDevices& held) { return has_any(held, ids); });
  if (holder != book.held.end()) return PodName{holder->pod_namespace, holder->pod};
  return Error{Errc::kNotFound, "find the pod of device " + (ids.empty() ? "" : ids.front()) +
                                    ": kubelet's podresources name none"};
}

std::string uid_of_ids(const std::vector<HeldDevices>& checkpoint,
                       const std::vector<std::string>& ids) {
  std::string uid;
  for (const HeldDevices& held : checkpoint)
    if (has_any(held, ids)) uid = held.pod_uid;
  return uid;
}

Result<Turn> turn_of(const kube::Pod& pod, const std::vector<HeldDevices>& held,
                     const std::vector<std::string>& ids) {
  const std::vector<std::string> wanted = sorted(ids);
  const auto has_these = [&](const kube::Container& container) {
    return std::ranges::any_of(held, [&](const HeldDevices& one) {
      const bool of_pod = one.pod_uid.empty()
                              ? one.pod_namespace == pod.name_space && one.pod == pod.name
                              : one.pod_uid == pod.uid || one.pod_uid == pod.cgroup_uid();
      return of_pod && one.container == container.name && sorted(one.ids) == wanted;
    });
  };
  const auto is_over = [](const kube::Container& init) {
    return init.state == kube::ContainerState::kTerminated && init.exit_code == 0;
  };
  const kube::Container* last_init = nullptr;
  for (const kube::Container& container : pod.containers) {  // init containers come first
    if (!has_these(container)) continue;
    if (container.kind != kube::ContainerKind::kInit) return Turn{container.name, false};
    last_init = &container;
    if (!is_over(container))
      return Turn{container.name, container.state == kube::ContainerState::kRunning};
  }
  // An init container that is started once more, with no container after it that has its ids.
  if (last_init != nullptr) return Turn{last_init->name, false};
  return Error{Errc::kNotFound, "find the container of pod " + pod.full_name() + " with device " +
                                    (ids.empty() ? "" : ids.front()) +
                                    ": kubelet's books name none"};
}

}  // namespace aliquot::node
