// The driver's book against ours: processes that use a GPU and have no lease. Whose they are is
// told by their cgroup, which kubelet names after the pod. Pure but for the reader it is given; any
// thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "broker/requests.h"
#include "node/probe_pool.h"

namespace aliquot::node {

struct UnleasedProcess {
  std::string uuid;  // of the GPU
  std::int32_t pid = 0;
  std::uint64_t bytes = 0;
  std::string pod_uid;  // empty: of no pod
};

// The uid in the text of a /proc/PID/cgroup, with hyphens; empty: none.
std::string pod_uid_of(std::string_view proc_cgroup);

// `cgroup_of` gives the text for a pid, empty for one that has ended: that one is left out.
std::vector<UnleasedProcess> unleased_processes(
    const std::vector<LatestReading>& readings, const std::vector<broker::LeaseRow>& leases,
    const std::function<std::string(std::int32_t)>& cgroup_of);

}  // namespace aliquot::node
