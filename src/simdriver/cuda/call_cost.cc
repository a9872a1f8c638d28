#include "simdriver/cuda/call_cost.h"

#include <time.h>

#include <utility>

#include "common/clock.h"
#include "simdriver/cuda/library.h"

namespace aliquot::simdriver {
namespace {

// A sleep ends late by 21-25 us, by 70 us with the default timer slack (measured); the rest is
// spent spinning, as a driver's call keeps its processor busy too.
constexpr Nanoseconds kSleepsLate = 80 * kMicrosecond;

Nanoseconds now_ns() { return MonotonicClock().now(); }

}  // namespace

void start_call_cost() { call_cost.since_ns = now_ns(); }

void pay_call_cost() {
  const Nanoseconds owed = std::exchange(call_cost.owed_ns, 0);
  const Nanoseconds until = call_cost.since_ns + library().host_span(owed);
  const Nanoseconds wake = until - kSleepsLate;
  if (wake > now_ns()) {
    const timespec at{wake / kSecond, wake % kSecond};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr);
  }
  while (now_ns() < until) {
  }
}

}  // namespace aliquot::simdriver
