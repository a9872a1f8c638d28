// BusyLog: when something was busy, as a total and in bins of one sample period, the newest 128.
//
// Intervals may be added in any order as long as they do not overlap. Value; no thread rules.
#pragma once

#include <array>
#include <cstdint>

#include "common/clock.h"

namespace aliquot::engine {

class BusyLog {
 public:
  static constexpr std::int64_t kBins = 128;

  explicit BusyLog(Nanoseconds period = kSecond / 6) : period_(period) {}

  void add(Nanoseconds from, Nanoseconds to);
  Nanoseconds total() const { return total_; }
  // Busy nanoseconds of bin k = [k * period, (k + 1) * period); 0 for what is older than kept.
  Nanoseconds bin(std::int64_t k) const;
  std::int64_t newest_bin() const { return newest_; }

 private:
  Nanoseconds period_;
  Nanoseconds total_ = 0;
  std::int64_t newest_ = 0;
  std::array<std::uint32_t, kBins> bins_{};
};

// The part of [from, to) that lies in bin k.
Nanoseconds overlap_with_bin(Nanoseconds from, Nanoseconds to, std::int64_t k, Nanoseconds period);

}  // namespace aliquot::engine
