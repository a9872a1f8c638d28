#include "node/unleased.h"

#include <algorithm>
#include <set>

namespace aliquot::node {
namespace {

constexpr std::size_t kUidLength = 36;  // 8-4-4-4-12; a static pod's is 32 digits

bool is_uid_character(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || c == '-' || c == '_';
}

}  // namespace

std::string pod_uid_of(std::string_view text) {
  for (std::size_t at = text.find("pod"); at != std::string_view::npos;
       at = text.find("pod", at + 1)) {
    // "/podUID/" or "-podU_I_D.slice".
    if (at == 0 || (text[at - 1] != '/' && text[at - 1] != '-')) continue;
    std::size_t end = at + 3;
    while (end < text.size() && is_uid_character(text[end])) ++end;
    const std::size_t length = end - at - 3;
    if (length != kUidLength && length != 32) continue;
    std::string uid(text.substr(at + 3, length));
    std::ranges::replace(uid, '_', '-');
    return uid;
  }
  return {};
}

std::vector<UnleasedProcess> unleased_processes(
    const std::vector<LatestReading>& readings, const std::vector<broker::LeaseRow>& leases,
    const std::function<std::string(std::int32_t)>& cgroup_of) {
  std::set<std::int32_t> attached;
  for (const broker::LeaseRow& lease : leases) {
    if (lease.processes > lease.rows.size())
      return {};  // its list is cut short: nobody can be told
    for (const broker::ProcessRow& process : lease.rows) attached.insert(process.pid);
  }
  std::vector<UnleasedProcess> found;
  for (const LatestReading& gpu : readings) {
    if (!gpu.reading) continue;
    for (const inventory::NvmlProcess& process : gpu.reading->state.processes) {
      if (attached.contains(process.pid)) continue;
      const std::string cgroup = cgroup_of(process.pid);
      if (!cgroup.empty())
        found.push_back({gpu.uuid, process.pid, process.bytes.value_or(0), pod_uid_of(cgroup)});
    }
  }
  return found;
}

}  // namespace aliquot::node
