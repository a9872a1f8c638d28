// The broker's half of the gate through the words in the pages, with tenants that are played.
#include "broker/compute_gpu.h"

#include <gtest/gtest.h>

#include <random>

#include "broker/compute_fixture.h"

namespace aliquot::broker {
namespace {

TEST(ComputeGpu, OpensTheGateOfATenantAloneWithoutAnEnd) {
  PlayedGpu machine;
  PlayedProcess& a = machine.add(3000);
  machine.run(10 * kMs);
  EXPECT_TRUE(a.lease.window().open);
  EXPECT_FALSE(a.lease.window().limited);
}

TEST(ComputeGpu, GivesEachItsPartOfTheTime) {
  PlayedGpu machine;
  PlayedProcess& a = machine.add(3000);
  PlayedProcess& b = machine.add(7000, 2 * kMs);
  machine.run(100 * kMs);
  const Nanoseconds since = machine.measure();
  machine.run(10 * kSecond);
  EXPECT_NEAR(machine.percent(a, since), 30, 0.5);
  EXPECT_NEAR(machine.percent(b, since), 70, 0.5);
}

TEST(ComputeGpu, SharesTheUnreservedAmongThoseWithoutCores) {
  PlayedGpu machine;
  PlayedProcess& a = machine.add(5000);
  PlayedProcess& b = machine.add(0);
  PlayedProcess& c = machine.add(0);
  c.lease.grant.weight = 4;
  machine.gpu->read_terms(machine.now, c.tenant);
  const Nanoseconds since = machine.measure();
  machine.run(10 * kSecond);
  EXPECT_NEAR(machine.percent(a, since), 50, 0.5);
  EXPECT_NEAR(machine.percent(b, since), 10, 0.5);
  EXPECT_NEAR(machine.percent(c, since), 40, 0.5);
}

TEST(ComputeGpu, AResizeCountsFromTheMomentItIsMade) {
  PlayedGpu machine;
  PlayedProcess& a = machine.add(3000);
  machine.add(3000);
  machine.run(2 * kSecond);
  a.lease.grant.cores = 6000;
  machine.gpu->read_terms(machine.now, a.tenant);
  const Nanoseconds since = machine.measure();
  machine.run(5 * kSecond);
  EXPECT_NEAR(machine.percent(a, since), 100.0 * 60 / 90, 0.5);
}

TEST(ComputeGpu, ACappedTenantGetsItsShareOfAnIdleGpu) {
  PlayedGpu machine;
  PlayedProcess& a = machine.add(3000);
  a.lease.grant.capped = 1;
  machine.gpu->read_terms(machine.now, a.tenant);
  machine.run(kSecond);
  const Nanoseconds since = machine.measure();
  machine.run(5 * kSecond);
  EXPECT_NEAR(machine.percent(a, since), 30, 1);
}

TEST(ComputeGpu, AnOnlineTenantPausesTheOthers) {
  PlayedGpu machine;
  PlayedProcess& offline = machine.add(5000);
  PlayedProcess& online = machine.add(5000);
  online.lease.grant.share_class = static_cast<std::uint32_t>(wire::ShareClass::kOnline);
  machine.gpu->read_terms(machine.now, online.tenant);
  machine.run(100 * kMs);
  Nanoseconds since = machine.measure();
  machine.run(kSecond);
  EXPECT_GT(machine.percent(online, since), 99);
  EXPECT_EQ(machine.gpu->look(machine.now, offline.tenant).standing,
            gate::Standing::kPausedByOnline);
  online.wants = false;
  machine.run(200 * kMs);
  since = machine.measure();
  machine.run(kSecond);
  EXPECT_GT(machine.percent(offline, since), 99);
  // What the next online burst may have to wait for.
  EXPECT_EQ(machine.gpu->look(machine.now, offline.tenant).longest_kernel, offline.kernel);
}

TEST(ComputeGpu, FromNativeToAGateNoWindowStaysOpen) {
  PlayedGpu machine({.policy = gate::Policy::kNative});
  PlayedProcess& a = machine.add(1000);
  PlayedProcess& b = machine.add(9000);
  machine.run(50 * kMs);
  EXPECT_TRUE(a.lease.window().open && b.lease.window().open);
  machine.gpu->set_gpu_terms(machine.now, {});
  const Nanoseconds since = machine.measure();
  machine.run(5 * kSecond);
  EXPECT_NEAR(machine.percent(a, since), 10, 0.5);
}

TEST(ComputeGpu, FromOnlineToOfflineTheGateCloses) {
  PlayedGpu machine;
  PlayedProcess& a = machine.add(1000);
  PlayedProcess& b = machine.add(9000);
  a.lease.grant.share_class = static_cast<std::uint32_t>(wire::ShareClass::kOnline);
  machine.gpu->read_terms(machine.now, a.tenant);
  machine.run(50 * kMs);
  a.lease.grant.share_class = static_cast<std::uint32_t>(wire::ShareClass::kOffline);
  machine.gpu->read_terms(machine.now, a.tenant);
  machine.run(200 * kMs);  // the release of online use
  const Nanoseconds since = machine.measure();
  machine.run(5 * kSecond);
  EXPECT_NEAR(machine.percent(b, since), 90, 0.5);
}

TEST(ComputeGpu, ANewBrokerGoesOnWhereTheOldOneWasKilled) {
  PlayedGpu machine;
  PlayedProcess& a = machine.add(3000);
  PlayedProcess& b = machine.add(7000);
  machine.run(kSecond + 3 * kMs);
  const std::uint32_t number = b.lease.window().number;
  machine.next_broker();
  EXPECT_GT(b.lease.window().number, number);  // no number is given twice
  const Nanoseconds since = machine.measure();
  machine.run(5 * kSecond);
  EXPECT_NEAR(machine.percent(a, since), 30, 0.5);
  EXPECT_NEAR(machine.percent(b, since), 70, 0.5);
}

TEST(ComputeGpu, ChargesNothingThatWasUsedUnderAnotherBroker) {
  PlayedGpu machine;
  PlayedProcess& a = machine.add(3000);
  machine.run(kSecond);
  machine.next_broker();
  EXPECT_EQ(machine.gpu->look(machine.now, a.tenant).account.charged_ns, 0);
}

TEST(ComputeGpu, TheDemandOfADeadProcessGoesWithIt) {
  PlayedGpu machine;
  PlayedProcess& a = machine.add(5000);
  PlayedProcess& b = machine.add(5000);
  machine.run(100 * kMs);
  a.wants = false;
  a.report = {.last_launch = machine.now, .waiting = 1};
  a.lease.say(a.report);
  machine.gpu->leave_slot(machine.now, a.tenant, 0);
  const Nanoseconds since = machine.measure();
  machine.run(kSecond);
  EXPECT_GT(machine.percent(b, since), 99.9);
}

TEST(ComputeGpu, AProcessThatEndsTakesNoUseWithIt) {
  PlayedLease lease;
  lease.grant.cores = 5000;
  ComputeGpu gpu({}, 1.0);
  const std::size_t tenant = gpu.add(kSecond, lease.grant, lease.ledger(), 0);
  gpu.take_slot(kSecond, tenant, 0);
  gpu.take_slot(kSecond, tenant, 1);
  lease.say({.busy_since = kSecond, .last_launch = kSecond, .in_flight = 1}, 0);
  gpu.step(kSecond + 100 * kMs);
  gpu.leave_slot(kSecond + 100 * kMs, tenant, 0);
  lease.say({.busy_since = kSecond + 100 * kMs, .last_launch = kSecond + 100 * kMs, .in_flight = 1},
            1);
  gpu.step(kSecond + 150 * kMs);
  EXPECT_EQ(gpu.look(kSecond + 150 * kMs, tenant).account.charged_ns, 150 * kMs);
}

TEST(ComputeGpu, WhoFloodsItsWordIsLookedAtNowAndThen) {
  PlayedGpu machine;
  PlayedProcess& a = machine.add(5000);
  unsigned looked = 0;
  Nanoseconds next = 0;
  for (Nanoseconds t = 0; t < kSecond; t += 10 * kUs) {
    a.lease.ring();
    machine.now += 10 * kUs;
    // As the thread does: the word wakes it only while it is waited for.
    if (machine.gpu->demands().empty() && machine.now < next) continue;
    next = machine.gpu->step(machine.now);
    ++looked;
  }
  EXPECT_LT(looked, 6000u);
  EXPECT_GT(looked, 900u);
}

TEST(ComputeGpu, GivesASignOfLifeWhileALeaseLives) {
  PlayedGpu machine;
  PlayedProcess& a = machine.add(5000);
  a.wants = false;
  machine.run(2 * kSecond);
  EXPECT_LE(machine.gpu->step(machine.now) - machine.now, 500 * kMs);
  EXPECT_EQ(a.lease.grant.gate[3], static_cast<std::uint64_t>(machine.now));
}

TEST(ComputeGpu, RandomWordsMoveNobodyElsesShare) {
  PlayedGpu machine;
  PlayedProcess& victim = machine.add(3000);
  machine.add(5000);
  PlayedProcess& scribbler = machine.add(2000);
  scribbler.wants = false;
  std::mt19937_64 random(7);
  const Nanoseconds since = machine.measure();
  for (Nanoseconds t = 0; t < 10 * kSecond; t += kMs) {
    for (auto& word : scribbler.lease.cell(0).gate) word = random() >> random() % 64;
    scribbler.lease.cell(0).demand = static_cast<std::uint32_t>(random());
    scribbler.lease.ring();
    machine.next_step = machine.now;
    machine.run(kMs);
  }
  EXPECT_GT(machine.percent(victim, since), 29);
}

TEST(ComputeGpu, ATenantThatAsksAndNeverLaunchesCostsLittle) {
  PlayedGpu machine;
  PlayedProcess& victim = machine.add(5000);
  PlayedProcess& phantom = machine.add(5000);
  phantom.wants = false;
  phantom.lease.say({.waiting = 1});
  machine.run(3 * kSecond);  // the ban grows
  const Nanoseconds since = machine.measure();
  machine.run(5 * kSecond);
  EXPECT_GT(machine.percent(victim, since), 99);
  EXPECT_GT(machine.gpu->look(machine.now, phantom.tenant).account.unused_grants, 0u);
}

TEST(ComputeGpu, FalseReportsDoNotPay) {
  PlayedGpu machine;
  PlayedProcess& honest = machine.add(5000);
  PlayedProcess& liar = machine.add(5000);
  // It reports its work as in flight but never as busy.
  for (Nanoseconds t = 0; t < 5 * kSecond; t += kMs) {
    machine.run(kMs);
    liar.report.busy_ns = 0;
    liar.lease.say(liar.report);
  }
  const Nanoseconds since = machine.measure();
  for (Nanoseconds t = 0; t < 5 * kSecond; t += kMs) {
    machine.run(kMs);
    liar.report.busy_ns = 0;
    liar.lease.say(liar.report);
  }
  EXPECT_GT(machine.percent(honest, since), 48);
}

// Runs for `duration` and judges each sample period as the broker does; findings of each process.
std::vector<unsigned> run_judged(PlayedGpu& machine, Nanoseconds duration) {
  constexpr Nanoseconds kPeriod = kSecond / 6;
  std::vector<unsigned> found(machine.processes.size());
  for (const Nanoseconds end = machine.now + duration; machine.now < end;) {
    machine.measure();
    machine.run(kPeriod);
    for (std::size_t i = 0; i < found.size(); ++i) {
      const PlayedProcess& process = *machine.processes[i];
      const double percent = 100.0 * static_cast<double>(process.ran) / kPeriod;
      found[i] +=
          machine.gpu->judge(process.tenant, machine.now, kPeriod, percent).offender ? 1 : 0;
    }
  }
  return found;
}

TEST(ComputeGpu, WorkThatIgnoresTheGateIsFoundWithinTwoSamples) {
  PlayedGpu machine;
  machine.add(5000);
  PlayedProcess& cheat = machine.add(1000);
  machine.run(kSecond);
  cheat.ignores_gate = true;
  cheat.depth = 8;
  EXPECT_GE(run_judged(machine, kSecond / 3 + 1)[1], 1u);
  EXPECT_TRUE(machine.gpu->look(machine.now, cheat.tenant).offender);
  EXPECT_GT(machine.gpu->look(machine.now, cheat.tenant).bypass_ns, 50 * kMs);
}

TEST(ComputeGpu, HonestTenantsAreNeverCalledOffenders) {
  PlayedGpu machine;
  machine.add(2000);
  machine.add(3000, 5 * kMs);
  machine.add(0, 50 * kUs);
  EXPECT_EQ(run_judged(machine, 10 * kSecond), (std::vector<unsigned>{0, 0, 0}));
}

TEST(ComputeGpu, AnOffenderPaysItsDebtInFull) {
  PlayedGpu machine;
  PlayedProcess& honest = machine.add(5000);
  PlayedProcess& offender = machine.add(5000);
  machine.run(kSecond);
  machine.gpu->add_bypass(offender.tenant, 4 * kSecond);  // forgiven to others: all above 500 ms
  const Nanoseconds since = machine.measure();
  machine.run(3 * kSecond);
  EXPECT_GT(machine.percent(honest, since), 98);
  EXPECT_EQ(machine.gpu->look(machine.now, offender.tenant).account.forgiven_ns, 0);
}

}  // namespace
}  // namespace aliquot::broker
