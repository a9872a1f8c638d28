// How much of a machine's free GPU memory lies in remainders too small for most jobs: smaller than
// a quarter of their GPU. By what is granted, not by what is used; 0 where nothing is free.
// Values; any thread.
#pragma once

#include <algorithm>
#include <cstdint>

namespace aliquot::inventory {

class MemoryFragmentation {
 public:
  void add(std::uint64_t total_bytes, std::uint64_t granted_bytes) {
    const std::uint64_t left = total_bytes - std::min(total_bytes, granted_bytes);
    free_bytes_ += static_cast<double>(left);
    if (left < total_bytes / 4) in_remainders_bytes_ += static_cast<double>(left);
  }
  // 0 to 1, of all free memory.
  double ratio() const { return free_bytes_ > 0 ? in_remainders_bytes_ / free_bytes_ : 0; }

 private:
  double free_bytes_ = 0;
  double in_remainders_bytes_ = 0;
};

}  // namespace aliquot::inventory
