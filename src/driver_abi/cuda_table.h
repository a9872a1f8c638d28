// The CUDA entry-point table as values: an id and an entry per row, and who answers a look-up.
//
// Rows, and what their columns mean: cuda_entry_points.def. Pointer types are in cuda_functions.h,
// pointers to a real driver in real_library.h. Everything here is pure and constant; any thread
// may call, also before main and inside malloc.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "driver_abi/table.h"

namespace aliquot::driver_abi {

enum class Cuda : std::uint16_t {
#define ALIQUOT_ENTRY(symbol, base, since, until, kind, params, args) symbol,
#include "driver_abi/cuda_entry_points.def"
  kCount
};

inline constexpr std::size_t kCudaCount = static_cast<std::size_t>(Cuda::kCount);
constexpr std::size_t index_of(Cuda id) { return static_cast<std::size_t>(id); }

extern const std::array<Entry, kCudaCount> kCudaEntries;  // NOLINT: constexpr, sorted by symbol
inline const Entry& entry(Cuda id) { return kCudaEntries[index_of(id)]; }

// The row of an exported symbol.
std::optional<Cuda> cuda_row(std::string_view symbol);

// cuGetProcAddress as data. `version` is what the caller asks for, `driver_version` what the
// driver before us says it is: rows younger than the driver do not exist.
enum class ProcAddressStatus { kFound, kUnknown, kVersionTooLow };
struct ProcAddressAnswer {
  ProcAddressStatus status = ProcAddressStatus::kUnknown;
  Cuda id = Cuda::kCount;  // only when found
  bool operator==(const ProcAddressAnswer&) const = default;
};
struct ProcAddressRequest {
  std::string_view base;
  int version = 0;
  bool per_thread_streams = false;  // flag 2
};
ProcAddressAnswer symbol_for(const ProcAddressRequest& request, int driver_version);

}  // namespace aliquot::driver_abi
