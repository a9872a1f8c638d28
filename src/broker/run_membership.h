// Which processes belong to a lease's run: descendants of its runners or of its attached processes,
// processes in a namespace that the run has made, processes in the cgroup it is confined to.
//
// A cgroup is named by its path in the unified hierarchy ("/a/b": it and all below it), or by the
// pod whose it is ("pod:UID": kubelet puts every container of a pod below a cgroup named after the
// UID, "podUID" or, as systemd slices cannot have hyphens, "...-podU_I_D.slice").
//
// A daemon whose parents have gone is no descendant any more unless the runner is a subreaper; a
// namespace or cgroup of its own covers it. Pure but for reading /proc; any thread. Hold the pidfds
// of `processes` and of the asking process, and look afterwards that they are alive: numbers alone
// prove nothing.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace aliquot::broker {

struct Run {
  std::span<const std::int32_t> processes;    // living: runners and attached ones
  std::span<const std::uint64_t> namespaces;  // made by the run; 0 entries are ignored
  std::string_view cgroup;                    // path or "pod:UID"; empty: none
};

enum class Belongs { kNo, kByDescent, kByNamespace, kByCgroup };

// `pid` as the caller's pid namespace numbers it.
Belongs membership_of(std::int32_t pid, const Run& run);

// Whether the text of a /proc/PID/cgroup says that the process is in the cgroup so named.
bool is_in_cgroup(std::string_view proc_cgroup, std::string_view cgroup);

}  // namespace aliquot::broker
