#include "inventory/health.h"

#include <gmock/gmock.h>

#include "inventory/xids.h"

namespace aliquot::inventory {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr Nanoseconds kMinute = 60 * kSecond;

// A GPU that is probed when its health asks for it.
class GpuHealthTest : public testing::Test {
 protected:
  GpuHealthTest() {
    reading_.uncorrected = 0;
    reading_.remap_failed = false;
    reading_.remap_pending = false;
    reading_.nvlinks_up = {true, true, false};
    reading_.nvlink_errors = 7;
    reading_.temperature_c = 40;
    reading_.slowdown_c = 90;
    health_.on_probe(reading_, now_);
  }

  void probe() {
    now_ = std::max(now_, health_.next_probe());
    health_.on_probe(reading_, now_);
  }
  // Probes until the GPU may be given out again; the number of probes, or 1000.
  int probes_until_usable() {
    int probes = 0;
    while (!health_.usable() && probes < 1000) {
      probe();
      ++probes;
    }
    return probes;
  }
  std::string evidence() const {
    return health_.faults().empty() ? "" : health_.faults().front().evidence;
  }

  HealthReading reading_;
  GpuHealth health_;
  Nanoseconds now_ = 1000 * kSecond;
};

TEST_F(GpuHealthTest, AGpuThatAnswersWellIsHealthy) {
  probe();
  EXPECT_EQ(health_.state(), HealthState::kHealthy);
  EXPECT_THAT(health_.faults(), IsEmpty());
  EXPECT_EQ(health_.next_probe(), now_ + kMinute);
}

TEST_F(GpuHealthTest, AProgramsOwnXidIsCountedAndHarmsNothing) {
  for (unsigned xid : {13u, 31u, 43u, 45u, 94u}) health_.on_xid(xid, now_);
  health_.on_xid(31, now_ + 5);
  EXPECT_EQ(health_.state(), HealthState::kHealthy);
  EXPECT_EQ(health_.xids().at(31).count, 2);
  EXPECT_EQ(health_.xids().at(31).last, now_ + 5);
}

TEST_F(GpuHealthTest, AHardwareXidIsUnhealthyAtOnceAndComesBackWhenQuiet) {
  health_.on_xid(48, now_);
  EXPECT_EQ(health_.state(), HealthState::kUnhealthy);
  EXPECT_THAT(evidence(), HasSubstr("XID 48"));
  const Nanoseconds began = now_;
  probe();
  EXPECT_FALSE(health_.usable()) << "a good probe alone says nothing about an XID";
  EXPECT_LT(probes_until_usable(), 100);
  EXPECT_EQ(health_.state(), HealthState::kHealthy);
  EXPECT_GE(now_ - began, HealthOptions{}.quiet);
  EXPECT_EQ(health_.xids().at(48).count, 1) << "the count outlives the fault";
}

TEST_F(GpuHealthTest, AnUnknownXidIsADriverFault) {
  EXPECT_EQ(describe_xid(9999).klass, XidClass::kDriver);
  health_.on_xid(9999, now_);
  EXPECT_EQ(health_.state(), HealthState::kUnhealthy);
}

TEST_F(GpuHealthTest, AnXidThatRepeatsKeepsTheGpuOut) {
  for (int i = 0; i < 20; ++i) {
    health_.on_xid(62, now_);
    probe();
    EXPECT_FALSE(health_.usable());
  }
}

TEST_F(GpuHealthTest, OffTheBusIsLostUntilAProbeAnswers) {
  health_.on_xid(79, now_);
  EXPECT_EQ(health_.state(), HealthState::kLost);
  reading_.off_bus = true;
  probe();
  EXPECT_EQ(health_.state(), HealthState::kLost);
  reading_.off_bus = false;
  probe();
  EXPECT_EQ(health_.state(), HealthState::kRecovering);
  EXPECT_THAT(health_.faults(), IsEmpty());
  probe();
  EXPECT_EQ(health_.state(), HealthState::kHealthy);
}

TEST_F(GpuHealthTest, OneSilentProbeIsADoubtTheSecondIsALoss) {
  reading_.answered = false;
  probe();
  EXPECT_EQ(health_.state(), HealthState::kSuspect);
  EXPECT_TRUE(health_.usable());
  const Nanoseconds doubted = now_;
  probe();
  EXPECT_EQ(health_.state(), HealthState::kLost);
  EXPECT_LE(now_ - doubted, kMinute) << "settled within one interval";
}

TEST_F(GpuHealthTest, OneSilentProbeThatIsFollowedByAGoodOneIsForgotten) {
  reading_.answered = false;
  probe();
  reading_.answered = true;
  probe();
  EXPECT_EQ(health_.state(), HealthState::kHealthy);
}

TEST_F(GpuHealthTest, GrowingUncorrectableErrorsAreAFaultTheirHistoryIsNot) {
  GpuHealth fresh;
  reading_.uncorrected = 12;
  fresh.on_probe(reading_, now_);
  EXPECT_TRUE(fresh.usable()) << "errors from before the first reading";
  probe();  // from 0 to 12
  EXPECT_EQ(health_.state(), HealthState::kUnhealthy);
  EXPECT_THAT(evidence(), HasSubstr("12 uncorrectable"));
  EXPECT_LT(probes_until_usable(), 100);
}

TEST_F(GpuHealthTest, AResetThatZeroesTheErrorsClearsThemAtOnce) {
  reading_.uncorrected = 3;
  probe();
  reading_.uncorrected = 0;
  EXPECT_EQ(probes_until_usable(), 2);
}

TEST_F(GpuHealthTest, AFailedRemapIsAFaultAPendingOneADoubt) {
  reading_.remap_pending = true;
  probe();
  EXPECT_EQ(health_.state(), HealthState::kSuspect);
  EXPECT_EQ(health_.next_probe(), now_ + kMinute) << "it stays until a reset: no hurry";
  reading_.remap_failed = true;
  probe();
  EXPECT_EQ(health_.state(), HealthState::kUnhealthy);
  reading_.remap_failed = reading_.remap_pending = false;
  EXPECT_EQ(probes_until_usable(), 2);
  EXPECT_EQ(health_.state(), HealthState::kHealthy);
}

TEST_F(GpuHealthTest, ALinkThatWentDownIsAFaultOneThatNeverCameUpIsNot) {
  reading_.nvlinks_up = {true, false, false};
  probe();
  EXPECT_EQ(health_.state(), HealthState::kUnhealthy);
  EXPECT_EQ(evidence(), "NVLink 1 went down");
  reading_.nvlinks_up = {true, true, false};
  EXPECT_EQ(probes_until_usable(), 2);
}

TEST_F(GpuHealthTest, LinkErrorsThatGrowTwiceRunningAreAFaultWithinOneInterval) {
  reading_.nvlink_errors = 8;
  probe();
  EXPECT_EQ(health_.state(), HealthState::kSuspect);
  const Nanoseconds doubted = now_;
  reading_.nvlink_errors = 10;
  probe();
  EXPECT_EQ(health_.state(), HealthState::kUnhealthy);
  EXPECT_LE(now_ - doubted, kMinute);
  EXPECT_EQ(probes_until_usable(), 2) << "errors that stopped growing are gone";
}

TEST_F(GpuHealthTest, HeatClearsOnlyAMarginBelowItsLimit) {
  reading_.temperature_c = 90;
  probe();
  EXPECT_EQ(health_.state(), HealthState::kUnhealthy);
  reading_.temperature_c = 89;
  probe();
  EXPECT_EQ(health_.state(), HealthState::kUnhealthy);
  reading_.temperature_c = 80;
  EXPECT_EQ(probes_until_usable(), 2);
}

TEST_F(GpuHealthTest, WhatTheGpuDoesNotTellIsNoFault) {
  GpuHealth health;
  for (int i = 0; i < 5; ++i) health.on_probe({}, now_ + i * kMinute);
  EXPECT_EQ(health.state(), HealthState::kHealthy);
}

TEST_F(GpuHealthTest, EachRelapseAsksForMoreGoodProbesUpToABound) {
  int asked = 0;
  for (int relapse = 0; relapse < 40; ++relapse) {
    reading_.nvlinks_up = {false, true, false};
    probe();
    reading_.nvlinks_up = {true, true, false};
    const int probes = probes_until_usable();
    EXPECT_GE(probes, asked);
    asked = probes;
  }
  EXPECT_EQ(asked, HealthOptions{}.most_good_probes);
}

TEST_F(GpuHealthTest, AGpuThatStayedWellIsTrustedAgain) {
  for (int relapse = 0; relapse < 4; ++relapse) {
    reading_.nvlinks_up = {false, true, false};
    probe();
    reading_.nvlinks_up = {true, true, false};
    probes_until_usable();
  }
  now_ += 2 * HealthOptions{}.relapse_window;
  probe();
  reading_.nvlinks_up = {false, true, false};
  probe();
  reading_.nvlinks_up = {true, true, false};
  EXPECT_EQ(probes_until_usable(), 2);
}

// Whatever was reported, in whatever order, good probes lead back.
TEST_F(GpuHealthTest, NoHistoryIsFinal) {
  unsigned seed = 12345;
  const auto random = [&](unsigned below) {
    seed = seed * 1664525 + 1013904223;
    return (seed >> 8) % below;
  };
  const HealthReading good = reading_;
  for (int round = 0; round < 500; ++round) {
    reading_ = good;
    reading_.uncorrected = random(4);
    reading_.answered = random(4) != 0;
    reading_.off_bus = random(8) == 0;
    reading_.remap_failed = random(5) == 0;
    reading_.nvlinks_up = {random(3) != 0, true, false};
    reading_.nvlink_errors = random(100);
    reading_.temperature_c = 70 + random(30);
    if (random(3) == 0) health_.on_xid(random(160), now_);
    probe();
    if (round % 20 != 19) continue;
    reading_ = good;
    ASSERT_LT(probes_until_usable(), 100) << "round " << round;
    probe();
    ASSERT_EQ(health_.state(), HealthState::kHealthy) << "round " << round;
  }
}

TEST(Xids, TheTableIsInOrderAndNamesItsClasses) {
  unsigned before = 0;
  for (const Xid& xid : known_xids()) {
    EXPECT_LT(before, xid.number);
    EXPECT_FALSE(xid.what.empty());
    EXPECT_EQ(describe_xid(xid.number).what, xid.what);
    before = xid.number;
  }
  EXPECT_EQ(name_of(describe_xid(31).klass), "application");
  EXPECT_EQ(name_of(describe_xid(119).klass), "driver");
  EXPECT_EQ(name_of(describe_xid(79).klass), "hardware");
}

}  // namespace
}  // namespace aliquot::inventory
