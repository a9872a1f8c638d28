#include "node/usage_meter.h"

#include <gtest/gtest.h>

namespace aliquot::node {
namespace {

const UsageMeter::Key kTrain{"train", 7, "GPU-0"};

UsageMeter::Share train(std::uint64_t limit, std::uint64_t used, double busy_s = 0) {
  return {"train", 7, "GPU-0", limit, used, busy_s};
}
UsageMeter::Share other(double busy_s) { return {"other", 8, "GPU-0", 100, 0, busy_s}; }
UsageMeter::Power energy(Nanoseconds at, double joules) {
  return {"GPU-0", at, joules, std::nullopt};
}
UsageMeter::Power watts(Nanoseconds at, double power) { return {"GPU-0", at, std::nullopt, power}; }

TEST(UsageMeter, ByteSecondsAreLimitAndRestTimesTime) {
  UsageMeter meter;
  meter.look(10 * kSecond, {train(1000, 200)}, {});
  EXPECT_EQ(meter.totals().at(kTrain), UsageTotals{}) << "nothing before it was seen";
  meter.look(15 * kSecond, {train(1000, 900)}, {});
  EXPECT_DOUBLE_EQ(meter.totals().at(kTrain).granted_byte_s, 5000);
  EXPECT_DOUBLE_EQ(meter.totals().at(kTrain).unused_byte_s, 4000);
  meter.look(16 * kSecond, {train(500, 100)}, {});
  EXPECT_DOUBLE_EQ(meter.totals().at(kTrain).granted_byte_s, 6000);
  EXPECT_DOUBLE_EQ(meter.totals().at(kTrain).unused_byte_s, 4100);
}

TEST(UsageMeter, ALimitBelowWhatIsHeldLeavesNothingUnused) {
  UsageMeter meter;
  meter.look(kSecond, {train(100, 300)}, {});
  meter.look(2 * kSecond, {train(100, 300)}, {});
  EXPECT_EQ(meter.totals().at(kTrain).unused_byte_s, 0);
}

TEST(UsageMeter, ALeasesAccountIsClosedWhenItIsGoneAndAnotherOfItsNameBeginsAnew) {
  UsageMeter meter;
  meter.look(kSecond, {train(100, 0)}, {});
  meter.look(2 * kSecond, {}, {});
  EXPECT_TRUE(meter.totals().empty());
  UsageMeter::Share again = train(100, 0);
  again.id = 9;
  meter.look(3 * kSecond, {again}, {});
  meter.look(4 * kSecond, {again}, {});
  EXPECT_EQ(meter.totals().size(), 1u);
  EXPECT_DOUBLE_EQ(meter.totals().at({"train", 9, "GPU-0"}).granted_byte_s, 100);
}

TEST(UsageMeter, EnergyGoesByThePartOfTheTimeThatWasHeld) {
  UsageMeter meter;
  meter.look(10 * kSecond, {train(100, 0, 1), other(0)}, {energy(10 * kSecond, 500)});
  meter.look(20 * kSecond, {train(100, 0, 6), other(2)}, {energy(20 * kSecond, 3500)});
  // 3000 J in 10 s: half of the time one held the GPU, a fifth the other; the rest is nobody's.
  EXPECT_DOUBLE_EQ(meter.totals().at(kTrain).energy_j, 1500);
  EXPECT_DOUBLE_EQ(meter.totals().at({"other", 8, "GPU-0"}).energy_j, 600);
}

TEST(UsageMeter, LeasesThatRanAtTheSameTimeNeverSumToMoreThanTheGpusEnergy) {
  UsageMeter meter;
  meter.look(10 * kSecond, {train(100, 0, 0), other(0)}, {energy(10 * kSecond, 0)});
  meter.look(20 * kSecond, {train(100, 0, 10), other(10)}, {energy(20 * kSecond, 3000)});
  EXPECT_DOUBLE_EQ(meter.totals().at(kTrain).energy_j, 1500);
}

TEST(UsageMeter, AReadingThatIsNotNewGivesNoEnergyTwice) {
  UsageMeter meter;
  meter.look(10 * kSecond, {train(100, 0, 0)}, {energy(10 * kSecond, 0)});
  meter.look(20 * kSecond, {train(100, 0, 5)}, {energy(20 * kSecond, 1000)});
  meter.look(21 * kSecond, {train(100, 0, 6)}, {energy(20 * kSecond, 1000)});
  EXPECT_DOUBLE_EQ(meter.totals().at(kTrain).energy_j, 500);
  meter.look(30 * kSecond, {train(100, 0, 15)}, {energy(30 * kSecond, 2000)});
  EXPECT_DOUBLE_EQ(meter.totals().at(kTrain).energy_j, 1500) << "what came between counts then";
}

TEST(UsageMeter, WithoutACounterPowerIsTakenOverTheTimeButNotOverASilence) {
  UsageMeter meter;
  meter.look(10 * kSecond, {train(100, 0, 0)}, {watts(10 * kSecond, 100)});
  meter.look(15 * kSecond, {train(100, 0, 5)}, {watts(15 * kSecond, 200)});
  EXPECT_DOUBLE_EQ(meter.totals().at(kTrain).energy_j, 1000);
  meter.look(1015 * kSecond, {train(100, 0, 1005)}, {watts(1015 * kSecond, 200)});
  EXPECT_DOUBLE_EQ(meter.totals().at(kTrain).energy_j, 1000 + 15 * 200);
}

TEST(UsageMeter, ACounterOfEnergyThatBeginsAnewTakesNothingAway) {
  UsageMeter meter;
  meter.look(10 * kSecond, {train(100, 0, 0)}, {energy(10 * kSecond, 9000)});
  meter.look(20 * kSecond, {train(100, 0, 5)}, {energy(20 * kSecond, 10)});
  EXPECT_EQ(meter.totals().at(kTrain).energy_j, 0);
}

TEST(UsageMeter, TheNextDaemonGoesOnWhereTheLastWasSeen) {
  UsageMeter first;
  first.look(10 * kSecond, {train(1000, 400, 0)}, {energy(10 * kSecond, 0)});
  first.look(20 * kSecond, {train(1000, 400, 4)}, {energy(20 * kSecond, 1000)});
  const UsageTotals shown = first.totals().at(kTrain);
  UsageMeter second;
  ASSERT_TRUE(second.restore(first.text(), 25 * kSecond));
  EXPECT_EQ(second.totals().at(kTrain), shown);
  // Another broker counts busy seconds from nothing.
  second.look(30 * kSecond, {train(1000, 400, 1)}, {energy(30 * kSecond, 3000)});
  const UsageTotals now = second.totals().at(kTrain);
  EXPECT_DOUBLE_EQ(now.granted_byte_s, 20'000);
  EXPECT_DOUBLE_EQ(now.unused_byte_s, 12'000);
  EXPECT_DOUBLE_EQ(now.busy_s, 5);
  EXPECT_DOUBLE_EQ(now.energy_j, shown.energy_j) << "nobody saw who held the GPU meanwhile";
}

TEST(UsageMeter, WhatIsOfAnotherBootOrNotUnderstoodChangesNothing) {
  UsageMeter first;
  first.look(10 * kSecond, {train(1000, 400, 0)}, {});
  UsageMeter second;
  EXPECT_FALSE(second.restore(first.text(), 5 * kSecond));
  EXPECT_FALSE(second.restore("{\"version\": 1}", 20 * kSecond));
  std::string later = first.text();
  later.replace(later.find("\"version\":1"), 11, "\"version\":2");
  const Status read = second.restore(later, 20 * kSecond);
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().message.find("begin anew"), std::string::npos);
  EXPECT_TRUE(second.totals().empty());
}

}  // namespace
}  // namespace aliquot::node
