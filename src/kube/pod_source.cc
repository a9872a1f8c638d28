#include "kube/pod_source.h"

#include <algorithm>

namespace aliquot::kube {

void FixedPods::set(std::vector<Pod> pods) {
  Pods refs;
  for (Pod& pod : pods) refs.push_back(std::make_shared<const Pod>(std::move(pod)));
  std::ranges::sort(refs, {}, [](const PodRef& pod) { return pod->full_name(); });
  {
    const std::lock_guard lock(mutex_);
    pods_ = refs;
  }
  if (changed_) changed_(refs);
}

Pods FixedPods::pods() const {
  const std::lock_guard lock(mutex_);
  return pods_;
}

PodRef FixedPods::find(std::string_view name_space, std::string_view name) const {
  for (const PodRef& pod : pods())
    if (pod->name_space == name_space && pod->name == name) return pod;
  return nullptr;
}

Result<PodRef> FixedPods::fetch(std::string_view name_space, std::string_view name) {
  if (PodRef pod = find(name_space, name)) return pod;
  return Error{Errc::kNotFound,
               "pod " + std::string(name_space) + "/" + std::string(name) + ": there is none"};
}

}  // namespace aliquot::kube
