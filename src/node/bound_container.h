// BoundContainer: which container has which lease, and by which device ids. One file a container
// under STATE/pods, so that a restarted daemon goes on where the last one was killed.
// docs/formats/node_state.md. Values and functions on files; any thread.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "common/clock.h"
#include "common/result.h"

namespace aliquot::node {

struct BoundContainer {
  std::string key;               // set_key(ids)
  std::vector<std::string> ids;  // kubelet's
  std::string pod_namespace, pod, uid, container;
  std::string lease;
  std::vector<std::string> gpus;  // UUIDs, as granted
  std::string share;              // the live change that is in force (aliquot.dev/share)
  Nanoseconds bound_at = 0;       // not kept: 0 after a restart

  bool is_of(std::string_view name_space, std::string_view name) const {
    return pod_namespace == name_space && pod == name;
  }
  std::string full_name() const { return pod_namespace + "/" + pod + "/" + container; }
};

std::string bound_container_text(const BoundContainer& bound);
Result<BoundContainer> parse_bound_container(std::string_view text, std::string_view where);

// A lease's name for the container: readable, at most 48 characters, another one for another pod of
// the same name.
std::string lease_name_for(const BoundContainer& bound);

}  // namespace aliquot::node
