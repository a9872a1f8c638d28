#include "engine/busy_log.h"

#include <algorithm>

namespace aliquot::engine {

Nanoseconds overlap_with_bin(Nanoseconds from, Nanoseconds to, std::int64_t k, Nanoseconds period) {
  return std::max<Nanoseconds>(0, std::min(to, (k + 1) * period) - std::max(from, k * period));
}

void BusyLog::add(Nanoseconds from, Nanoseconds to) {
  if (to <= from) return;
  total_ += to - from;
  const std::int64_t last = (to - 1) / period_;
  if (last > newest_) {
    // Bins between the newest and this one were idle; never clear more than all of them.
    for (std::int64_t k = std::max(newest_ + 1, last - kBins + 1); k <= last; ++k) {
      bins_[static_cast<std::size_t>(k % kBins)] = 0;
    }
    newest_ = last;
  }
  for (std::int64_t k = std::max(from / period_, newest_ - kBins + 1); k <= last; ++k) {
    bins_[static_cast<std::size_t>(k % kBins)] +=
        static_cast<std::uint32_t>(overlap_with_bin(from, to, k, period_));
  }
}

Nanoseconds BusyLog::bin(std::int64_t k) const {
  if (k < 0 || k > newest_ || k <= newest_ - kBins) return 0;
  return bins_[static_cast<std::size_t>(k % kBins)];
}

}  // namespace aliquot::engine
