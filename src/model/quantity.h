// Amounts of memory and compute as people write them. Strict: what cannot be meant is an error that
// names the value, never a guess. Values and pure functions; any thread.
//
// Memory is "4GiB", "1.5GiB", "512MB", "25%" (of the GPU it is taken from) or "unlimited"; a bare
// number is refused because users of other systems mean MiB, 256 MiB blocks or bytes by it.
// Cores are a percentage of one GPU's time: "30", "30%", "12.5".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/result.h"

namespace aliquot::model {

inline constexpr std::uint64_t kKiB = 1ull << 10;
inline constexpr std::uint64_t kMiB = 1ull << 20;
inline constexpr std::uint64_t kGiB = 1ull << 30;
inline constexpr std::uint32_t kWholeGpu = 10'000;  // a whole GPU in 1/100 %

// The largest limit that the ledger can hold: 42 bits (docs/formats/ledger.md).
inline constexpr std::uint64_t kLargestMemory = (1ull << 42) - 1;

struct MemoryQuantity {
  enum class Kind { kBytes, kPercent, kUnlimited };
  Kind kind = Kind::kUnlimited;
  std::uint64_t value = 0;  // bytes, or 1/100 % of the GPU's memory

  // Bytes of a GPU with `physical` bytes; percentages round down, unlimited is all of it.
  std::uint64_t bytes_of(std::uint64_t physical) const;
  bool operator==(const MemoryQuantity&) const = default;
};

Result<MemoryQuantity> parse_memory(std::string_view text);

// 1/100 % of one GPU, 1..10000.
Result<std::uint32_t> parse_cores(std::string_view text);

// The exact form where one decimal suffices, else two, rounded down: "4GiB", "1.5GiB", "79.99GiB".
std::string memory_text(std::uint64_t bytes);

// "30%", "12.5%".
std::string cores_text(std::uint32_t hundredths);

}  // namespace aliquot::model
