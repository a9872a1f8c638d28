// Several processes of a lease are one tenant.
#include "gate/united.h"

#include <gtest/gtest.h>

namespace aliquot::gate {
namespace {

constexpr Nanoseconds kUs = kMicrosecond;
constexpr Nanoseconds kMs = kMillisecond;

struct United : ::testing::Test {
  UnitedReports united;
  UnitedReports::Process one, other;

  TenantReport look(Nanoseconds now, const TenantReport& first, const TenantReport& second) {
    united.begin(now);
    united.add(one, first);
    united.add(other, second);
    return united.end();
  }
};

TEST_F(United, WhatIsInFlightAndWhoWaitsAddsUp) {
  const TenantReport both = look(100 * kMs,
                                 {.busy_ns = 5 * kMs,
                                  .busy_since = 90 * kMs,
                                  .last_launch = 95 * kMs,
                                  .since = 92 * kMs,
                                  .in_flight = 2,
                                  .inside = 1,
                                  .outstanding_ns = 400 * kUs,
                                  .head_ns = 200 * kUs,
                                  .longest_ns = 1 * kMs,
                                  .lead_ns = 90 * kUs},
                                 {.busy_ns = 3 * kMs,
                                  .last_launch = 80 * kMs,
                                  .since = 99 * kMs,
                                  .waiting = 1,
                                  .longest_ns = 2 * kMs,
                                  .lead_ns = 70 * kUs});
  EXPECT_EQ(both, (TenantReport{.last_launch = 95 * kMs,
                                .since = 92 * kMs,
                                .in_flight = 2,
                                .waiting = 1,
                                .inside = 1,
                                .outstanding_ns = 400 * kUs,
                                .head_ns = 200 * kUs,
                                .longest_ns = 2 * kMs,
                                .lead_ns = 70 * kUs}));
}

TEST_F(United, TimeInWhichBothHaveWorkBegunCountsOnce) {
  look(10 * kMs, {.busy_since = 10 * kMs}, {});
  // The one until now, the other from 12 ms to 15 ms: slices of one device.
  const TenantReport same =
      look(20 * kMs, {.busy_since = 10 * kMs}, {.busy_ns = 3 * kMs, .busy_until = 15 * kMs});
  EXPECT_EQ(same.busy_ns, 10 * kMs);
}

// Between two looks the one has had the device from 10 to 11 ms and from 12.2 to 13.2, the other in
// between, and the device has switched twice. Of two spans of one process a report tells the sum.
TEST_F(United, TurnsAndSwitchesAmongThemCountWholeWhileWorkIsAlwaysInFlight) {
  TenantReport first{.busy_since = 9 * kMs, .in_flight = 1};
  look(9'500 * kUs, first, {.in_flight = 1});
  const TenantReport before = look(10 * kMs, first, {.in_flight = 1});
  first = {.busy_ns = 1 * kMs, .busy_since = 12'200 * kUs, .in_flight = 1};
  const TenantReport after =
      look(13'200 * kUs, first, {.busy_ns = 1 * kMs, .busy_until = 12'100 * kUs});
  EXPECT_EQ(after.busy_ns - before.busy_ns, 3'200 * kUs);
}

TEST_F(United, AGapWithNothingInFlightIsNobodys) {
  const TenantReport before = look(10 * kMs, {.busy_since = 9 * kMs, .in_flight = 1}, {});
  const TenantReport after = look(20 * kMs, {.busy_ns = 3 * kMs, .busy_until = 12 * kMs},
                                  {.busy_ns = 1 * kMs, .busy_until = 19 * kMs});
  EXPECT_EQ(after.busy_ns - before.busy_ns, 3 * kMs);
}

TEST_F(United, TimeInWhichOneAfterTheOtherHadAdds) {
  look(10 * kMs, {}, {});
  const TenantReport apart = look(20 * kMs, {.busy_ns = 2 * kMs, .busy_until = 13 * kMs},
                                  {.busy_ns = 3 * kMs, .busy_until = 19 * kMs});
  EXPECT_EQ(apart.busy_ns, 5 * kMs);
}

TEST_F(United, WhatEndedBeforeTheNextLaunchIsCountedWhereItEnded) {
  look(10 * kMs, {.busy_since = 9 * kMs}, {});
  // Until 13 ms the one, from then on the other; the one has launched again since.
  const TenantReport both = look(
      20 * kMs, {.busy_ns = 4 * kMs, .busy_until = 13 * kMs, .since = 19 * kMs, .in_flight = 1},
      {.busy_since = 13 * kMs});
  EXPECT_EQ(both.busy_ns, 10 * kMs);
}

TEST_F(United, OnlyWhatGrowsSinceTheLastLookCounts) {
  look(10 * kMs, {.busy_ns = 9 * kMs, .busy_until = 10 * kMs}, {});  // seen for the first time
  EXPECT_EQ(look(11 * kMs, {.busy_ns = 9 * kMs, .busy_until = 10 * kMs}, {}).busy_ns, 0);
  // After exec it begins anew; a jump is no more than has passed.
  EXPECT_EQ(look(12 * kMs, {.busy_ns = 0}, {}).busy_ns, 0);
  EXPECT_EQ(look(13 * kMs, {.busy_ns = 900 * kMs, .busy_until = 13 * kMs}, {}).busy_ns, 1 * kMs);
}

}  // namespace
}  // namespace aliquot::gate
