// The policies' worked examples through the broker's half: terms from grant pages, time on a
// device.
#include <gtest/gtest.h>

#include "broker/compute_fixture.h"

namespace aliquot::broker {
namespace {

using gate::Policy;

struct Policies : testing::Test {
  static gate::GpuTerms units(Policy policy) { return {.policy = policy, .max_inst = 20}; }
  static PlayedProcess& add(PlayedGpu& machine, std::uint32_t weight) {
    PlayedProcess& process = machine.add(0);
    process.lease.grant.weight = weight;
    machine.gpu->read_terms(machine.now, process.tenant);
    return process;
  }
  // Percent of each over five seconds, after one that is not counted.
  static std::vector<double> shares(PlayedGpu& machine) {
    machine.run(kSecond);
    const Nanoseconds since = machine.measure();
    machine.run(5 * kSecond);
    std::vector<double> percent;
    for (const auto& process : machine.processes)
      percent.push_back(machine.percent(*process, since));
    return percent;
  }
  static void expect(const std::vector<double>& found, const std::vector<double>& expected,
                     double tolerance = 0.5) {
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i)
      EXPECT_NEAR(found[i], expected[i], tolerance) << i;
  }
};

TEST_F(Policies, FairGivesAUnitWhateverTheOthersDo) {
  PlayedGpu machine(units(Policy::kFair));
  add(machine, 1);
  expect(shares(machine), {5});
  add(machine, 1);
  add(machine, 1);
  expect(shares(machine), {5, 5, 5});
}

TEST_F(Policies, PreemptiveGivesOneOfThoseThatHoldTheGpu) {
  PlayedGpu machine(units(Policy::kPreemptive));
  PlayedProcess& a = add(machine, 1);
  PlayedProcess& b = add(machine, 1);
  add(machine, 1);
  expect(shares(machine), {33.3, 33.3, 33.3});
  for (PlayedProcess* gone : {&a, &b}) {
    gone->wants = false;
    machine.run(20 * kMs);
    machine.gpu->leave_slot(machine.now, gone->tenant, 0);
  }
  expect(shares(machine), {0, 0, 100});
}

TEST_F(Policies, WeightedDividesByWeight) {
  PlayedGpu machine(units(Policy::kWeighted));
  add(machine, 1);
  add(machine, 1);
  PlayedProcess& heavy = add(machine, 2);
  expect(shares(machine), {25, 25, 50});
  heavy.wants = false;  // it holds the GPU and keeps its units
  expect(shares(machine), {25, 25, 0});
  machine.gpu->leave_slot(machine.now, heavy.tenant, 0);
  expect(shares(machine), {50, 50, 0});
}

TEST_F(Policies, FixedGivesExactlyTheUnits) {
  PlayedGpu machine(units(Policy::kFixed));
  add(machine, 1);
  add(machine, 3);
  expect(shares(machine), {5, 15});
}

TEST_F(Policies, SoftLendsWhatIsIdleAndGivesItBackWithinATenthOfASecond) {
  PlayedGpu machine(units(Policy::kSoft));
  add(machine, 1);
  add(machine, 1);
  PlayedProcess& third = add(machine, 2);
  third.wants = false;
  expect(shares(machine), {50, 50, 0});
  third.wants = true;
  machine.run(100 * kMs);
  const Nanoseconds since = machine.measure();
  machine.run(kSecond);
  EXPECT_NEAR(machine.percent(third, since), 50, 1.5);
}

TEST_F(Policies, NativeLeavesEverythingToTheDriver) {
  PlayedGpu machine(units(Policy::kNative));
  const PlayedProcess& a = add(machine, 1);
  const PlayedProcess& b = add(machine, 20);
  machine.run(10 * kMs);
  EXPECT_TRUE(a.lease.window().open && !a.lease.window().limited);
  EXPECT_TRUE(b.lease.window().open && !b.lease.window().limited);
}

TEST_F(Policies, BestEffortDividesAmongThoseThatWork) {
  PlayedGpu machine(units(Policy::kBestEffort));
  add(machine, 1);
  add(machine, 7);
  PlayedProcess& third = add(machine, 1);
  expect(shares(machine), {33.3, 33.3, 33.3});
  third.wants = false;
  expect(shares(machine), {50, 50, 0});
}

TEST_F(Policies, APriorityRatioSplitsBetweenOnlineAndOffline) {
  PlayedGpu machine({.policy = Policy::kSoft, .prio_ratio = 80});
  add(machine, 1);
  add(machine, 1);
  PlayedProcess& online = add(machine, 1);
  online.lease.grant.share_class = static_cast<std::uint32_t>(wire::ShareClass::kOnline);
  machine.gpu->read_terms(machine.now, online.tenant);
  expect(shares(machine), {10, 10, 80});
  online.wants = false;
  expect(shares(machine), {50, 50, 0});
}

}  // namespace
}  // namespace aliquot::broker
