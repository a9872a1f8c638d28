// What the CUDA and the NVML table share: a row's kind, its entry, and looking a symbol up.
//
// Pure and constant; any thread may call, also before main and inside malloc.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace aliquot::driver_abi {

enum class Kind : std::uint8_t { kPass, kGuard, kDeny };

struct Entry {
  std::string_view symbol;  // of a literal
  std::string_view base;
  int since;
  int until;
  Kind kind;

  // The symbol, which ends in a zero byte.
  constexpr const char* c_str() const { return symbol.data(); }
  // Whether a driver or library of this CUDA version (13000 is 13.0) exports the symbol.
  constexpr bool in_version(int version) const {
    return since <= version && (until == 0 || version < until);
  }
};

template <std::size_t kCount>
consteval bool sorted_by_symbol(const std::array<Entry, kCount>& entries) {
  for (std::size_t i = 1; i < kCount; ++i)
    if (!(entries[i - 1].symbol < entries[i].symbol)) return false;
  return true;
}

// Every base is the symbol itself or the symbol up to a suffix: the look-up by base leans on it.
template <std::size_t kCount>
consteval bool bases_are_prefixes(const std::array<Entry, kCount>& entries) {
  for (const Entry& entry : entries)
    if (!entry.symbol.starts_with(entry.base) || entry.base.empty()) return false;
  return true;
}

// The index of a symbol in a sorted table, or its size: ten comparisons for 700 rows.
template <std::size_t kCount>
constexpr std::size_t index_of_symbol(const std::array<Entry, kCount>& entries,
                                      std::string_view symbol) {
  const auto at = std::ranges::lower_bound(entries, symbol, {}, &Entry::symbol);
  return at != entries.end() && at->symbol == symbol
             ? static_cast<std::size_t>(at - entries.begin())
             : kCount;
}

}  // namespace aliquot::driver_abi
