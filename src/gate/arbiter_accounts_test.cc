// The broker's side, step by step: what tenants are charged, owe and are let off.
#include "gate/arbiter_fixture.h"

namespace aliquot::gate {
namespace {

TEST_F(Broker, ChargesSilenceInTheOwnWindow) {
  const std::size_t a = add(50);
  const std::size_t b = add(50);
  wait_at_gate(a);
  wait_at_gate(b);
  step();
  const std::size_t first = is_open(a) ? a : b;
  launch(first, 100 * kUs);
  step();
  now += 100 * kUs;
  complete(first);
  step();
  step_at(now + 100 * kUs);
  EXPECT_EQ(arbiter.account(first).charged_ns, 200 * kUs);
}

TEST_F(Broker, ChargesTheWallClockToAHolderThatReportsNothing) {
  const std::size_t liar = add(50);
  const std::size_t b = add(50);
  wait_at_gate(liar);
  step();
  launch(liar, 30 * kMs);
  reports[liar].busy_since = 0;
  wait_at_gate(b);
  reports[liar].waiting = 1;  // else its silence would be charged anyhow
  for (int i = 0; i < 40; ++i) step_at(now + 1 * kMs);
  EXPECT_GE(arbiter.account(liar).false_reports, 1u);
  EXPECT_GT(arbiter.account(liar).charged_ns, 9 * kMs);
}

TEST_F(Broker, SplitsTheWallClockWhereWorkOfTwoOverlaps) {
  const std::size_t a = add(50);
  const std::size_t b = add(50);
  wait_at_gate(a);
  step();
  launch(a, 1 * kMs);
  launch(b, 1 * kMs);
  step();
  step_at(now + 1 * kMs);
  EXPECT_EQ(arbiter.account(a).charged_ns, 500 * kUs);
  EXPECT_EQ(arbiter.account(b).charged_ns, 500 * kUs);
}

struct Tails : Broker {
  // The holder's window is closed with a few of its kernels of 50 us left, the successor launches.
  void hand_over() {
    if (is_open(other)) complete(other);
    wait_at_gate(holder);
    while (!is_open(holder)) step_at(now + 100 * kUs);
    reports[holder].longest_ns = 50 * kUs;
    launch(holder, 9 * kMs);
    wait_at_gate(other);
    step();
    while (!is_open(other)) step_at(next);
    left = reports[holder].work_left(now) + reports[holder].longest_ns;
    before = arbiter.account(holder).charged_ns;
    others_before = arbiter.account(other).charged_ns;
    launch(other, 50 * kMs);
  }
  Nanoseconds charged() const { return arbiter.account(holder).charged_ns - before; }
  void pass(Nanoseconds time) {
    for (const Nanoseconds end = now + time; now < end;) step_at(now + 100 * kUs);
  }

  void SetUp() override {
    reports[other].lead_ns = 80 * kUs;
    step_at(now + 1 * kSecond);  // both are there for a while
  }

  const std::size_t holder = add(50), other = add(50);
  Nanoseconds left = 0, before = 0, others_before = 0;
};

// The device gives the successor a slice, and both say that they are at work until the tail has
// ended.
TEST_F(Tails, ASliceBeforeTheTailHasEndedIsTheSuccessors) {
  hand_over();
  EXPECT_LT(left, 200 * kUs);
  pass(2 * kMs);
  const Nanoseconds others = arbiter.account(other).charged_ns - others_before;
  EXPECT_NEAR(static_cast<double>(charged()), static_cast<double>(left), 10);
  EXPECT_NEAR(static_cast<double>(charged() + others), 2e6, 10);
}

// Behind a slice the tail would have ended: what goes on was not known, and both may have run it.
TEST_F(Tails, WhatLastsLongerThanASliceIsSplit) {
  hand_over();
  pass(10 * kMs);
  const Nanoseconds until = charged();
  pass(1 * kMs);
  EXPECT_NEAR(static_cast<double>(charged() - until), 500e3, 50e3);
}

// Nor does it pay to tell of a short tail each time.
TEST_F(Tails, WhoTellsOfShortTailsEachTimeIsBelievedOnce) {
  hand_over();
  pass(4 * kMs);
  complete(holder);
  const Nanoseconds first = charged();
  hand_over();
  pass(4 * kMs);
  EXPECT_GT(charged(), first + 500 * kUs);
}

// Reports of work that has begun but is not in flight are no reports of a tail.
TEST_F(Tails, AHiddenTailIsSplit) {
  hand_over();
  reports[holder].in_flight = 0;
  reports[holder].outstanding_ns = reports[holder].head_ns = 0;
  reports[holder].last_launch = now;
  pass(2 * kMs);
  EXPECT_NEAR(static_cast<double>(charged()), 1e6, 60e3);
}

TEST_F(Broker, ForgivesDebtAboveASecondOfTheShareButNotToOffenders) {
  for (const bool offender : {false, true}) {
    arbiter = Arbiter();
    reports.clear();
    const std::size_t a = add(20);
    const std::size_t b = add(80);
    arbiter.mark_offender(a, offender);
    wait_at_gate(a);
    wait_at_gate(b);
    step();
    // V moves by a fifth of the charge, so 10 s put it 8 s behind; forgiving moves V back.
    arbiter.charge(a, 10 * kSecond);
    for (int i = 0; i < 40; ++i) step_at(now + 100 * kUs);
    EXPECT_EQ(arbiter.account(a).forgiven_ns > 0, !offender);
    EXPECT_EQ(arbiter.lag(a) >= -201 * kMs, !offender);
  }
}

TEST_F(Broker, KeepsWhatIsOwedThroughAResize) {
  const std::size_t a = add(20);
  const std::size_t b = add(80);
  wait_at_gate(a);
  wait_at_gate(b);
  step();
  arbiter.charge(a, 50 * kMs);
  const Nanoseconds before = arbiter.lag(a);
  arbiter.set_terms(now, a, {.cores_percent = 20.5});
  EXPECT_NEAR(static_cast<double>(arbiter.lag(a)), static_cast<double>(before), 1e6);
  EXPECT_EQ(arbiter.share(a).percent, 20.5);
}

TEST_F(Broker, AResizeEndsALongWindowSoonAndCountsAtOnce) {
  const std::size_t holder = add(50);
  const std::size_t other = add(50);
  for (const std::size_t tenant : {holder, other}) {
    reports[tenant].longest_ns = 50 * kMs;
    wait_at_gate(tenant);
  }
  step();
  ASSERT_TRUE(is_open(holder));
  ASSERT_GT(arbiter.window(holder).end, now + 20 * kMs);
  launch(holder, 50 * kMs);
  step_at(now + 1 * kMs);
  arbiter.set_terms(now, holder, {.cores_percent = 10});
  EXPECT_LE(arbiter.window(holder).end, now + 10 * kMs);
  // One millisecond is charged at the old share and one at the new: of 60 parts it has 10 now.
  const Nanoseconds before = arbiter.lag(holder);
  EXPECT_NEAR(static_cast<double>(before), -0.5 * kMs, 1);
  step_at(now + 1 * kMs);
  EXPECT_NEAR(static_cast<double>(arbiter.lag(holder) - before), -50.0 / 60 * kMs, 1);
}

// Going idle for a moment, or being shut out for one, is no way out of a debt.
TEST_F(Broker, ADebtOutlastsAShortSleep) {
  const auto [debtor, other] = holder_and_other(20 * kMs, 0);
  wait_at_gate(other);
  step();
  step_at(now + 20 * kMs);
  complete(debtor);
  step();
  const Nanoseconds owed = arbiter.lag(debtor);
  EXPECT_NEAR(static_cast<double>(owed), -10.0 * kMs, 1.0 * kMs);
  launch(other, 1 * kSecond);
  for (int i = 0; i < 2; ++i) {
    step_at(now + 6 * kMs);  // silent for longer than makes it inactive
    wait_at_gate(debtor);
    step();
    reports[debtor].waiting = 0;
    step();
  }
  EXPECT_NEAR(static_cast<double>(arbiter.lag(debtor)), owed + 2 * 6 * kMs * 0.5, 1.0 * kMs);
}

TEST_F(Broker, KeepsACappedTenantWaitingThoughTheDeviceIsIdle) {
  arbiter.set_gpu_terms(now, {.policy = Policy::kFixed, .max_inst = 20});
  const std::size_t a = add(10);
  wait_at_gate(a);
  step();
  ASSERT_TRUE(is_open(a));
  launch(a, 10 * kMs);
  step_at(now + 10 * kMs);
  complete(a);
  wait_at_gate(a);
  step();
  step_at(now + 200 * kUs);
  EXPECT_FALSE(is_open(a));
  EXPECT_EQ(arbiter.standing(now, a), Standing::kCapped);
  // 10 ms at a tenth are paid off 100 ms after they began; the timer is armed for that.
  for (int i = 0; i < 50 && !is_open(a); ++i) step_at(next);
  EXPECT_TRUE(is_open(a));
  EXPECT_NEAR(static_cast<double>(now - kSecond), 100e6, 3e6);
}

}  // namespace
}  // namespace aliquot::gate
