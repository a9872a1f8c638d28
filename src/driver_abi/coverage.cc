#include "driver_abi/coverage.h"

#include <algorithm>

namespace aliquot::driver_abi {

std::string_view to_string(Kind kind) {
  switch (kind) {
    case Kind::kPass:
      return "pass";
    case Kind::kGuard:
      return "guard";
    case Kind::kDeny:
      return "deny";
  }
  return "unknown";
}

Coverage coverage_of(std::span<const Entry> entries, int version) {
  Coverage coverage;
  for (const Entry& entry : entries) {
    if (version != kAllVersions && !entry.in_version(version)) continue;
    ++coverage.total;
    coverage.pass += entry.kind == Kind::kPass;
    coverage.guard += entry.kind == Kind::kGuard;
    coverage.deny += entry.kind == Kind::kDeny;
  }
  return coverage;
}

std::vector<std::string> names_without_row(std::span<const std::string> exported,
                                           std::span<const Entry> entries) {
  std::vector<std::string> unknown;
  for (const std::string& name : exported)
    if (!std::ranges::binary_search(entries, std::string_view(name), {}, &Entry::symbol))
      unknown.push_back(name);
  return unknown;
}

}  // namespace aliquot::driver_abi
