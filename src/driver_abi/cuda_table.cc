#include "driver_abi/cuda_table.h"

#include <algorithm>

namespace aliquot::driver_abi {

constexpr std::array<Entry, kCudaCount> kCudaEntries{{
#define ALIQUOT_ENTRY(symbol, base, since, until, kind, params, args) \
  Entry{#symbol, #base, since, until, Kind::kind},
#include "driver_abi/cuda_entry_points.def"
}};

static_assert(sorted_by_symbol(kCudaEntries), "keep cuda_entry_points.def sorted, no doubles");
static_assert(bases_are_prefixes(kCudaEntries));

namespace {

constexpr bool per_thread(std::string_view symbol) {
  return symbol.ends_with("_ptds") || symbol.ends_with("_ptsz");
}

// Two rows of one base, one stream mode and one version would leave the answer open.
consteval bool answers_are_unique() {
  for (std::size_t i = 0; i < kCudaCount; ++i)
    for (std::size_t j = i + 1; j < kCudaCount; ++j) {
      const Entry& a = kCudaEntries[i];
      const Entry& b = kCudaEntries[j];
      if (!b.symbol.starts_with(a.base)) break;
      if (a.base == b.base && a.since == b.since && per_thread(a.symbol) == per_thread(b.symbol))
        return false;
    }
  return true;
}
static_assert(answers_are_unique());

}  // namespace

std::optional<Cuda> cuda_row(std::string_view symbol) {
  const std::size_t at = index_of_symbol(kCudaEntries, symbol);
  if (at == kCudaCount) return std::nullopt;
  return static_cast<Cuda>(at);
}

// A base is a prefix of its symbols, so its rows lie in one short run that starts at the base.
ProcAddressAnswer symbol_for(const ProcAddressRequest& request, int driver_version) {
  ProcAddressAnswer plain;
  ProcAddressAnswer streams;
  if (request.base.empty()) return plain;
  const auto first = std::ranges::lower_bound(kCudaEntries, request.base, {}, &Entry::symbol);
  int plain_since = -1;
  int streams_since = -1;
  for (auto row = first; row != kCudaEntries.end() && row->symbol.starts_with(request.base);
       ++row) {
    if (row->base != request.base || !row->in_version(driver_version)) continue;
    const bool is_streams = per_thread(row->symbol);
    ProcAddressAnswer& answer = is_streams ? streams : plain;
    int& since = is_streams ? streams_since : plain_since;
    if (row->since > request.version) {
      if (answer.status == ProcAddressStatus::kUnknown)
        answer.status = ProcAddressStatus::kVersionTooLow;
    } else if (row->since > since) {
      since = row->since;
      answer = {ProcAddressStatus::kFound, static_cast<Cuda>(row - kCudaEntries.begin())};
    }
  }
  // Without a per-thread form of that version the ordinary function is the answer.
  if (request.per_thread_streams && streams.status == ProcAddressStatus::kFound) return streams;
  return plain;
}

}  // namespace aliquot::driver_abi
