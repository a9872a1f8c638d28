#include "driver_abi/nvml_table.h"

namespace aliquot::driver_abi {

constexpr std::array<Entry, kNvmlCount> kNvmlEntries{{
#define ALIQUOT_ENTRY(symbol, base, since, until, kind, params, args) \
  Entry{#symbol, #base, since, until, Kind::kind},
#include "driver_abi/nvml_entry_points.def"
}};

static_assert(sorted_by_symbol(kNvmlEntries), "keep nvml_entry_points.def sorted, no doubles");
static_assert(bases_are_prefixes(kNvmlEntries));

std::optional<Nvml> nvml_row(std::string_view symbol) {
  const std::size_t at = index_of_symbol(kNvmlEntries, symbol);
  if (at == kNvmlCount) return std::nullopt;
  return static_cast<Nvml>(at);
}

}  // namespace aliquot::driver_abi
