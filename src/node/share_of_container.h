// What a container may have: from what the scheduler assigned, what the pod asks for, and the slots
// kubelet chose, in this order (docs/formats/assignment.md). Pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "broker/requests.h"
#include "common/result.h"
#include "kube/assignment.h"

namespace aliquot::node {

struct ContainerShare {
  broker::LeaseRequest request;  // shares, weight and class
  bool assigned = false;         // the GPUs are decided
};

struct ShareRules {
  kube::BareMemory bare_memory;
  unsigned parts = 1;  // of a GPU, where nothing but the slot is asked for: 1: the whole
};

// One share a slot. Slots of different GPUs name them as a wish; several of one GPU name none.
Result<ContainerShare> share_of(const kube::Pod& pod, const kube::Container& container,
                                const std::vector<std::string>& ids, const ShareRules& rules = {});

}  // namespace aliquot::node
