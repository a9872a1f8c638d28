// What the tables cover, as data for a report: how many symbols are passed, guarded, denied.
//
// `aliquot abi` prints it as a table and as JSON; the rows themselves are kCudaEntries and
// kNvmlEntries. Pure; any thread may call.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "driver_abi/table.h"

namespace aliquot::driver_abi {

std::string_view to_string(Kind kind);  // "pass", "guard", "deny"

struct Coverage {
  std::size_t total = 0;
  std::size_t pass = 0;
  std::size_t guard = 0;
  std::size_t deny = 0;
  bool operator==(const Coverage&) const = default;
};

// Over the symbols that a driver or library of this CUDA version exports; kAllVersions counts all.
inline constexpr int kAllVersions = 0;
Coverage coverage_of(std::span<const Entry> entries, int version = kAllVersions);

// Exported names of a library (from `nm -D`, say) that have no row: a newer driver than we know.
std::vector<std::string> names_without_row(std::span<const std::string> exported,
                                           std::span<const Entry> entries);

}  // namespace aliquot::driver_abi
