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

bool is_in_cgroup(std::int32_t pid, std::string_view cgroup) {
  const auto text = read_file("/proc/" + std::to_string(pid) + "/cgroup", 64 << 10);
  if (!text) return false;
  const std::size_t at = text->find("0::");  // the unified hierarchy
  if (at == std::string::npos) return false;
  std::string_view own = std::string_view(*text).substr(at + 3);
  own = own.substr(0, own.find('\n'));
  return own == cgroup ||
         (own.starts_with(cgroup) && (cgroup.ends_with('/') || own[cgroup.size()] == '/'));
}

}  // namespace

Belongs membership_of(std::int32_t pid, const Run& run) {
  if (descends(pid, run.processes)) return Belongs::kByDescent;
  for (const char* name : {"mnt", "pid"}) {
    const std::uint64_t own = namespace_of(pid, name);
    if (own != 0 && std::ranges::find(run.namespaces, own) != run.namespaces.end())
      return Belongs::kByNamespace;
  }
  if (!run.cgroup.empty() && is_in_cgroup(pid, run.cgroup)) return Belongs::kByCgroup;
  return Belongs::kNo;
}

}  // namespace aliquot::broker
