// Free address ranges of one window: first fit, merged when given back. Pure; under the owner's
// lock.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>
#include <optional>

namespace aliquot::simdriver {

class FreeRanges {
 public:
  FreeRanges(std::uint64_t base, std::uint64_t bytes) { ranges_[base] = bytes; }

  // `align` is a power of two.
  std::optional<std::uint64_t> take(std::uint64_t bytes, std::uint64_t align) {
    for (auto range = ranges_.begin(); range != ranges_.end(); ++range) {
      const std::uint64_t at = (range->first + align - 1) & ~(align - 1);
      const std::uint64_t end = range->first + range->second;
      if (at + bytes > end || at + bytes < at) continue;
      cut(range, at, bytes);
      return at;
    }
    return std::nullopt;
  }

  // That very place, if it is free.
  bool take_at(std::uint64_t at, std::uint64_t bytes) {
    auto range = ranges_.upper_bound(at);
    if (range == ranges_.begin()) return false;
    --range;
    if (at + bytes < at || at + bytes > range->first + range->second) return false;
    cut(range, at, bytes);
    return true;
  }

  void give(std::uint64_t at, std::uint64_t bytes) {
    auto next = ranges_.lower_bound(at);
    if (next != ranges_.end() && at + bytes == next->first) {
      bytes += next->second;
      next = ranges_.erase(next);
    }
    if (next != ranges_.begin()) {
      const auto before = std::prev(next);
      if (before->first + before->second == at) {
        before->second += bytes;
        return;
      }
    }
    ranges_[at] = bytes;
  }

  std::size_t pieces() const { return ranges_.size(); }
  // All of `bytes` from `base` is free.
  bool is_whole(std::uint64_t base, std::uint64_t bytes) const {
    return ranges_.size() == 1 && ranges_.begin()->first == base &&
           ranges_.begin()->second == bytes;
  }

 private:
  using Range = std::map<std::uint64_t, std::uint64_t>::iterator;

  void cut(Range range, std::uint64_t at, std::uint64_t bytes) {
    const std::uint64_t start = range->first;
    const std::uint64_t end = start + range->second;
    if (at == start) {
      ranges_.erase(range);
    } else {
      range->second = at - start;
    }
    if (at + bytes < end) ranges_[at + bytes] = end - at - bytes;
  }

  std::map<std::uint64_t, std::uint64_t> ranges_;
};

}  // namespace aliquot::simdriver
