#include "common/clock.h"

#include <ctime>

namespace aliquot {

Nanoseconds MonotonicClock::now() const {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * kSecond + t.tv_nsec;
}

}  // namespace aliquot
