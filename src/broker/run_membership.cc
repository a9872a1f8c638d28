#include "broker/run_membership.h"

#include <algorithm>

#include "broker/identity.h"
#include "common/files.h"

namespace aliquot::broker {
namespace {

// Deeper chains are nobody's honest program; the bound keeps a hostile one from holding the broker.
constexpr int kMostAncestors = 128;

bool descends(std::int32_t pid, std::span<const std::int32_t> from) {
  for (int depth = 0; depth < kMostAncestors && pid > 0; ++depth) {
    if (std::ranges::find(from, pid) != from.end()) return true;
    if (pid == 1) return false;
    const auto stat = process_stat(pid);
    if (!stat) return false;
    pid = stat->parent;
  }
  return false;
}

bool is_below(std::string_view path, std::string_view cgroup) {
  return path == cgroup ||
         (path.starts_with(cgroup) && (cgroup.ends_with('/') || path[cgroup.size()] == '/'));
}

// One component of a path: "podUID", or a slice "kubepods-burstable-podU_I_D.slice".
bool is_of_pod(std::string_view component, std::string_view uid) {
  if (component.ends_with(".slice")) component.remove_suffix(6);
  const std::size_t at = component.rfind("pod");
  if (at == std::string_view::npos || (at != 0 && component[at - 1] != '-')) return false;
  return std::ranges::equal(component.substr(at + 3), uid,
                            [](char a, char b) { return a == b || (a == '_' && b == '-'); });
}

bool path_is_of_pod(std::string_view path, std::string_view uid) {
  while (!path.empty()) {
    const std::size_t end = std::min(path.find('/'), path.size());
    if (is_of_pod(path.substr(0, end), uid)) return true;
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return false;
}

}  // namespace

bool is_in_cgroup(std::string_view proc_cgroup, std::string_view cgroup) {
  constexpr std::string_view kPod = "pod:";
  while (!proc_cgroup.empty()) {
    const std::size_t end = std::min(proc_cgroup.find('\n'), proc_cgroup.size());
    const std::string_view line = proc_cgroup.substr(0, end);
    proc_cgroup.remove_prefix(std::min(end + 1, proc_cgroup.size()));
    // "NUMBER:CONTROLLERS:PATH"; the unified hierarchy is number 0. A pod's name is the same in
    // all.
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string_view::npos || second == std::string_view::npos) continue;
    const std::string_view path = line.substr(second + 1);
    if (cgroup.starts_with(kPod)
            ? cgroup.size() > kPod.size() && path_is_of_pod(path, cgroup.substr(kPod.size()))
            : line.starts_with("0::") && is_below(path, cgroup))
      return true;
  }
  return false;
}

Belongs membership_of(std::int32_t pid, const Run& run) {
  if (descends(pid, run.processes)) return Belongs::kByDescent;
  for (const char* name : {"mnt", "pid"}) {
    const std::uint64_t own = namespace_of(pid, name);
    if (own != 0 && std::ranges::find(run.namespaces, own) != run.namespaces.end())
      return Belongs::kByNamespace;
  }
  if (run.cgroup.empty()) return Belongs::kNo;
  const auto cgroups = read_file("/proc/" + std::to_string(pid) + "/cgroup", 64 << 10);
  if (cgroups && is_in_cgroup(*cgroups, run.cgroup)) return Belongs::kByCgroup;
  return Belongs::kNo;
}

}  // namespace aliquot::broker
