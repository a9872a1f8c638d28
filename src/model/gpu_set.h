// A set of GPUs of one node, by index. A value of one word; any thread.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <string>
#include <string_view>

#include "common/result.h"

namespace aliquot::model {

class GpuSet {
 public:
  static constexpr unsigned kCapacity = 32;

  constexpr GpuSet() = default;
  constexpr GpuSet(std::initializer_list<unsigned> gpus) {
    for (const unsigned gpu : gpus) insert(gpu);
  }
  static constexpr GpuSet from_bits(std::uint32_t bits) {
    GpuSet set;
    set.bits_ = bits;
    return set;
  }
  // The first `count` GPUs.
  static constexpr GpuSet first(unsigned count) {
    return from_bits(count >= kCapacity ? ~0u : (1u << count) - 1);
  }

  constexpr std::uint32_t bits() const { return bits_; }
  constexpr unsigned size() const { return static_cast<unsigned>(std::popcount(bits_)); }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr bool contains(unsigned gpu) const { return (bits_ >> gpu & 1) != 0; }
  constexpr bool contains(GpuSet other) const { return (other.bits_ & ~bits_) == 0; }
  constexpr void insert(unsigned gpu) { bits_ |= 1u << gpu; }
  constexpr void erase(unsigned gpu) { bits_ &= ~(1u << gpu); }
  // The lowest index; the set must not be empty.
  constexpr unsigned lowest() const { return static_cast<unsigned>(std::countr_zero(bits_)); }

  friend constexpr GpuSet operator|(GpuSet a, GpuSet b) { return from_bits(a.bits_ | b.bits_); }
  friend constexpr GpuSet operator&(GpuSet a, GpuSet b) { return from_bits(a.bits_ & b.bits_); }
  friend constexpr GpuSet operator-(GpuSet a, GpuSet b) { return from_bits(a.bits_ & ~b.bits_); }
  constexpr bool operator==(const GpuSet&) const = default;

  // for (unsigned gpu : set): ascending.
  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = unsigned;
    using difference_type = std::ptrdiff_t;
    using pointer = const unsigned*;
    using reference = unsigned;
    constexpr Iterator() = default;
    constexpr explicit Iterator(std::uint32_t rest) : rest_(rest) {}
    constexpr unsigned operator*() const { return static_cast<unsigned>(std::countr_zero(rest_)); }
    constexpr Iterator& operator++() {
      rest_ &= rest_ - 1;
      return *this;
    }
    constexpr Iterator operator++(int) {
      const Iterator before = *this;
      ++*this;
      return before;
    }
    constexpr bool operator==(const Iterator&) const = default;

   private:
    std::uint32_t rest_ = 0;
  };
  constexpr Iterator begin() const { return Iterator(bits_); }
  constexpr Iterator end() const { return Iterator(0); }

 private:
  std::uint32_t bits_ = 0;
};

// "0-3,6"; "none" for the empty set.
std::string gpu_set_text(GpuSet set);

// Indices and ranges, "0-3,6", each at most once; "none" or nothing is the empty set.
Result<GpuSet> parse_gpu_set(std::string_view text);

}  // namespace aliquot::model
