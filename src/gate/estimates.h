// How long a kernel will take, from how long it took: one entry per (function, grid, block).
//
// A fixed table: no allocation, no lock. One writer at a time (the interposer serialises them);
// of() may be called beside it from any thread, and may then mistake one kernel's estimate for
// another's once. Needs no library at run time.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "common/clock.h"

namespace aliquot::gate {

struct KernelShape {
  std::uint64_t function = 0;
  std::uint32_t grid[3] = {1, 1, 1};
  std::uint32_t block[3] = {1, 1, 1};
};

// Never 0. On the path of every launch: a multiplication for each word.
inline std::uint64_t kernel_key(const KernelShape& shape) {
  constexpr std::uint64_t kOdd = 0x9e37'79b9'7f4a'7c15;  // 2^64 / golden ratio
  std::uint64_t key = shape.function * kOdd;
  for (int i = 0; i < 3; ++i) {
    key ^= static_cast<std::uint64_t>(shape.grid[i]) << 32 | shape.block[i];
    key *= kOdd;
    key ^= key >> 32;
  }
  return key == 0 ? 1 : key;
}

class Estimates {
 public:
  struct Estimate {
    Nanoseconds duration_ns = 0;  // 0: never measured
    Nanoseconds deviation_ns = 0;
  };

  Estimate of(std::uint64_t key) const {
    const Entry& first = entries_[key % kEntries];  // where it nearly always is
    const Entry& entry = load(first.key) == key ? first : entries_[place_of(key)];
    if (load(entry.key) != key) return {};
    const auto value = std::bit_cast<Value>(load(entry.value));
    return {static_cast<Nanoseconds>(value.duration), static_cast<Nanoseconds>(value.deviation)};
  }
  // One measured duration: moving averages of it (weight 1/5) and of its deviation (1/10).
  void measured(std::uint64_t key, Nanoseconds duration_ns);
  // The longest estimate lately: decays by 1/1000 a measurement.
  Nanoseconds longest() const { return static_cast<Nanoseconds>(longest_); }

 private:
  static constexpr std::size_t kEntries = 2048;
  static constexpr std::size_t kProbes = 4;
  struct Value {
    float duration = 0;
    float deviation = 0;
  };
  struct Entry {  // atomic words
    std::uint64_t key = 0;
    std::uint64_t value = 0;  // Value
  };
  static std::uint64_t load(const std::uint64_t& word) {
    return __atomic_load_n(&word, __ATOMIC_RELAXED);
  }
  std::size_t place_of(std::uint64_t key) const;

  Entry entries_[kEntries];
  double longest_ = 0;
};

}  // namespace aliquot::gate
