// Whose ids these are: the container that kubelet is about to start, told by device ids alone.
//
// podresources names pod and container, but leaves ordinary init containers out; kubelet lets a
// container of the pod reuse its init containers' ids; the checkpoint has them all, by the pod's
// uid. So the pod is found from any of the ids, and of its containers with just these ids the one
// whose turn it is: init containers run first, in their order, and one that has ended is over.
// Pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "common/result.h"
#include "kube/pod.h"
#include "node/kubelet_book.h"

namespace aliquot::node {

// The pod of the ids by podresources. kNotFound: none has them (yet, or any more).
Result<PodName> pod_of_ids(const KubeletBook& book, const std::vector<std::string>& ids);
// The uid of the pod by the checkpoint; empty: none. Of several (a pod that ended lately) the last.
std::string uid_of_ids(const std::vector<HeldDevices>& checkpoint,
                       const std::vector<std::string>& ids);

struct Turn {
  std::string container;
  // Its status says that it runs: then this status is older than the start that is asked about.
  bool stale = false;
};

// `held`: what is known of the pod's containers and their ids, from both books.
Result<Turn> turn_of(const kube::Pod& pod, const std::vector<HeldDevices>& held,
                     const std::vector<std::string>& ids);

}  // namespace aliquot::node
