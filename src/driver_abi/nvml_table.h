// The NVML entry-point table as values: an id and an entry per row.
//
// Rows, and what their columns mean: nvml_entry_points.def. Pointer types are in nvml_functions.h,
// pointers to a real library in real_library.h. Everything here is pure and constant; any thread
// may call, also before main and inside malloc.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "driver_abi/table.h"

namespace aliquot::driver_abi {

enum class Nvml : std::uint16_t {
#define ALIQUOT_ENTRY(symbol, base, since, until, kind, params, args) symbol,
#include "driver_abi/nvml_entry_points.def"
  kCount
};

inline constexpr std::size_t kNvmlCount = static_cast<std::size_t>(Nvml::kCount);
constexpr std::size_t index_of(Nvml id) { return static_cast<std::size_t>(id); }

extern const std::array<Entry, kNvmlCount> kNvmlEntries;  // NOLINT: constexpr, sorted by symbol
inline const Entry& entry(Nvml id) { return kNvmlEntries[index_of(id)]; }

// The row of an exported symbol.
std::optional<Nvml> nvml_row(std::string_view symbol);

}  // namespace aliquot::driver_abi
