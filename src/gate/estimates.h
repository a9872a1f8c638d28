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

// Never 0. On the path of every launch: two multiplications, each folded from 128 bits to 64.
inline std::uint64_t kernel_key(const KernelShape& shape) {
  constexpr std::uint64_t kOne = 0x9e37'79b9'7f4a'7c15;  // 2^64 / golden ratio
  constexpr std::uint64_t kTwo = 0xd1b5'4a32'd192'ed03;  // 2^64 / its plastic cousin
  const auto both = [&shape](int i) {
    return static_cast<std::uint64_t>(shape.grid[i]) << 32 | shape.block[i];
  };
  const auto folded = [](std::uint64_t a, std::uint64_t b) {
    __extension__ using Wide = unsigned __int128;
    const Wide product = static_cast<Wide>(a) * b;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
  };
  const std::uint64_t key =
      folded(folded(shape.function ^ kOne, both(0) ^ kTwo) ^ both(1), both(2) ^ kOne);
  return key == 0 ? 1 : key;
}

// What a graph is taken to last until it is measured, as a whole: it cannot be stopped between its
// nodes. `known_ns`: those of its kernels that were measured elsewhere; each other one counts as a
// short one, and all of these together as one unknown kernel at least.
inline Nanoseconds graph_estimate(Nanoseconds known_ns, std::uint64_t unknown_kernels,
                                  Nanoseconds unknown_kernel_ns) {
  constexpr Nanoseconds kShort = 10 * kMicrosecond;
  if (unknown_kernels == 0) return known_ns;
  const Nanoseconds unknown = static_cast<Nanoseconds>(unknown_kernels) * kShort;
  return known_ns + (unknown > unknown_kernel_ns ? unknown : unknown_kernel_ns);
}

class Estimates {
 public:
  struct Estimate {
    Nanoseconds duration_ns = 0;  // 0: never measured
    Nanoseconds deviation_ns = 0;
  };

  [[gnu::always_inline]] Estimate of(std::uint64_t key) const {
    for (std::size_t i = 0; i < kProbes; ++i) {  // nearly always the first
      const Entry& entry = entries_[(key + i) % kEntries];
      if (load(entry.key) != key) continue;
      const auto value = std::bit_cast<Value>(load(entry.value));
      return {static_cast<Nanoseconds>(value.duration), static_cast<Nanoseconds>(value.deviation)};
    }
    return {};
  }
  // One measured duration: moving averages of it (weight 1/5) and of its deviation (1/10). A second
  // one that is shorter replaces the first.
  void measured(std::uint64_t key, Nanoseconds duration_ns);
  // The longest estimate lately of kernels that were measured twice: that kernel's own, less 1/1000
  // for each measurement of another.
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
  std::uint64_t longest_key_ = 0;
};

}  // namespace aliquot::gate
