#include "simdriver/server/machine_clock.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace aliquot::simdriver {
namespace {

TEST(MachineClock, GoesAtTheGivenPartOfTheHostsTimeFromItsBeginning) {
  SteppedClock host;
  host.advance(5 * kSecond);
  const MachineClock clock(host, 100'000);
  EXPECT_EQ(clock.now(), 5 * kSecond);
  host.advance(1'000'000'009);
  EXPECT_EQ(clock.now(), 5 * kSecond + 100'000'000);
  EXPECT_EQ(clock.machine_time(0), 5 * kSecond);
  EXPECT_EQ(clock.host_span(3), 30);
}

TEST(MachineClock, IsTheHostsTimeAtRealSpeed) {
  SteppedClock host;
  const MachineClock clock(host, 1'000'000);
  host.advance(123'456'789'012'345);
  EXPECT_EQ(clock.now(), host.now());
  EXPECT_EQ(clock.host_time(987'654'321), 987'654'321);
}

TEST(MachineClock, NamesTheFirstHostMomentOfAMachineMoment) {
  SteppedClock host;
  host.advance(777);
  std::mt19937_64 random(4);
  for (int i = 0; i < 20'000; ++i) {
    const auto scale = static_cast<std::uint32_t>(1000 + random() % 999'001);
    const MachineClock clock(host, scale);
    const auto at = static_cast<Nanoseconds>(778 + random() % (1ull << (random() % 50)));
    const Nanoseconds first = clock.host_time(at);
    ASSERT_GE(clock.machine_time(first), at) << scale;
    ASSERT_LT(clock.machine_time(first - 1), at) << scale;
  }
}

TEST(MachineClock, WaitsLongRatherThanOverflow) {
  const SteppedClock host;
  const MachineClock clock(host, 1000);
  EXPECT_GT(clock.host_time(INT64_MAX), INT64_MAX / 8);
  EXPECT_LT(clock.machine_time(INT64_MAX), INT64_MAX / 999);
  EXPECT_EQ(clock.machine_time(INT64_MIN), 0);
}

}  // namespace
}  // namespace aliquot::simdriver
