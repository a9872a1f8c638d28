// What slips past the gate, seen in the driver's samples.
#include "gate/audit.h"

#include <gtest/gtest.h>

namespace aliquot::gate {
namespace {

constexpr Nanoseconds kMs = kMillisecond;

// Two tenants that take turns of 10 ms: each is allowed half of the time.
struct TwoTenants : ::testing::Test {
  Audit audit;
  void SetUp() override {
    for (Nanoseconds now = 0; now <= 2'000 * kMs; now += 10 * kMs) {
      const Nanoseconds first = now / 2;
      const std::vector<Nanoseconds> allowed = {first, now - first};
      audit.note(now, allowed);
    }
  }
};

TEST_F(TwoTenants, WhoStaysInItsWindowsIsNotSuspected) {
  for (Nanoseconds end = 200 * kMs; end <= 2'000 * kMs; end += 100 * kMs) {
    const Audit::Finding found = audit.sample(0, end, 100 * kMs, 54);
    EXPECT_FALSE(found.offender);
    EXPECT_EQ(found.excess_ns, 0);
  }
}

TEST_F(TwoTenants, TwoSamplesInARowMakeAnOffender) {
  const Audit::Finding first = audit.sample(0, 300 * kMs, 100 * kMs, 60);
  EXPECT_FALSE(first.offender);
  EXPECT_EQ(first.excess_ns, 10 * kMs);
  EXPECT_TRUE(audit.sample(0, 400 * kMs, 100 * kMs, 60).offender);
}

TEST_F(TwoTenants, ASampleWithinBoundsBetweenThemClearsTheFirst) {
  audit.sample(0, 300 * kMs, 100 * kMs, 60);
  audit.sample(0, 400 * kMs, 100 * kMs, 50);
  EXPECT_FALSE(audit.sample(0, 500 * kMs, 100 * kMs, 60).offender);
}

TEST_F(TwoTenants, AFlagrantSampleIsEnough) {
  EXPECT_TRUE(audit.sample(0, 300 * kMs, 100 * kMs, 90).offender);
}

TEST_F(TwoTenants, ASampleFromBeforeTheTenantIsNotItsOwn) {
  audit.forget(0);
  EXPECT_EQ(audit.sample(0, 1'000 * kMs, 100 * kMs, 100).excess_ns, 0);
}

TEST(Audit, AWindowThatStaysOpenNeedsNoFurtherNotes) {
  Audit audit;
  audit.note(0, std::vector<Nanoseconds>{0});
  audit.note(100 * kMs, std::vector<Nanoseconds>{100 * kMs});
  // Alone: the broker sleeps, and the tenant may use all of the device.
  EXPECT_EQ(audit.sample(0, 1'100 * kMs, 100 * kMs, 100).excess_ns, 0);
}

TEST(Audit, KnowsNothingOfTimesItHasForgotten) {
  Audit audit;
  for (Nanoseconds now = 0; now < 10 * kSecond; now += 10 * kMs) {
    audit.note(now, std::vector<Nanoseconds>{0});
  }
  EXPECT_EQ(audit.sample(0, 1 * kSecond, 100 * kMs, 100).excess_ns, 0);
  EXPECT_EQ(audit.sample(0, 9 * kSecond, 100 * kMs, 100).excess_ns, 100 * kMs);
}

}  // namespace
}  // namespace aliquot::gate
