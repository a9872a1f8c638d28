// Clock: time enters as an argument or through this interface, never by a call inside a decision.
// now() may be called from any thread.
#pragma once

#include <cstdint>

namespace aliquot {

using Nanoseconds = std::int64_t;

inline constexpr Nanoseconds kMicrosecond = 1'000;
inline constexpr Nanoseconds kMillisecond = 1'000'000;
inline constexpr Nanoseconds kSecond = 1'000'000'000;

class Clock {
 public:
  virtual ~Clock() = default;
  // Nanoseconds since an arbitrary start; never goes back.
  virtual Nanoseconds now() const = 0;
};

// CLOCK_MONOTONIC.
class MonotonicClock final : public Clock {
 public:
  Nanoseconds now() const override;
};

// Moves only when told to. For tests and virtual time.
class SteppedClock final : public Clock {
 public:
  Nanoseconds now() const override { return now_; }
  void advance(Nanoseconds by) { now_ += by; }

 private:
  Nanoseconds now_ = 0;
};

}  // namespace aliquot
