// The broker's side, step by step: who may launch, and until when.
#include <random>

#include "gate/arbiter_fixture.h"

namespace aliquot::gate {
namespace {

TEST_F(Broker, GivesATenantAloneAnUnlimitedWindow) {
  const std::size_t a = add(30);
  wait_at_gate(a);
  step();
  EXPECT_TRUE(is_open(a));
  EXPECT_FALSE(arbiter.window(a).limited);
  ASSERT_EQ(arbiter.changed().size(), 1u);
  EXPECT_EQ(arbiter.changed()[0], a);
}

TEST_F(Broker, LimitsTheHolderSoonAfterSomebodyComes) {
  const std::size_t a = add(50);
  const std::size_t b = add(50);
  wait_at_gate(a);
  step();
  launch(a, 10 * kMs);
  step_at(now + 1 * kMs);
  EXPECT_FALSE(arbiter.window(a).limited);
  wait_at_gate(b);
  step();
  EXPECT_TRUE(arbiter.window(a).limited);
  EXPECT_LE(arbiter.window(a).end, now + 200 * kUs);
  EXPECT_FALSE(is_open(b));
}

TEST_F(Broker, OpensTheSuccessorWhenTheHoldersWorkIsAboutToEnd) {
  const auto [a, b] = holder_and_other(1 * kMs, 80 * kUs);
  wait_at_gate(b);
  step();  // a's last millisecond ends at +1 ms
  const Nanoseconds end = now + 1 * kMs;
  EXPECT_EQ(next, end - 80 * kUs);
  step_at(end - 80 * kUs);
  EXPECT_FALSE(is_open(a));
  EXPECT_TRUE(is_open(b));
  EXPECT_EQ(arbiter.window(b).start, end);
}

TEST_F(Broker, LooksAgainWhereTheHolderMayBeDoneSoonerThanItTold) {
  const auto [a, b] = holder_and_other(1 * kMs, 80 * kUs);
  reports[a].in_flight = 10;
  reports[a].head_ns = 100 * kUs;
  wait_at_gate(b);
  step();
  reports[a].waiting = 1;    // it has no room left, so its turn ends with its work
  step_at(now + 500 * kUs);  // 100 us of the 500 that are gone are believed
  EXPECT_EQ(next, now + 50 * kUs + (500 - 50 - 80) * kUs);
  step_at(next);
  EXPECT_EQ(next, now + 102'500);  // it may be over at any time, but 820 us were silent
  EXPECT_FALSE(is_open(b));
}

TEST_F(Broker, LooksLessAndLessOftenAtAHolderThatIsOverdue) {
  const auto [holder, other] = holder_and_other(50 * kUs, 30 * kUs);
  reports[holder].in_flight = 2;
  reports[holder].outstanding_ns = 100 * kUs;
  wait_at_gate(holder);
  wait_at_gate(other);
  step();
  // Nothing is told for so long: with the same report the same end is foretold again and again.
  const Nanoseconds until = now + 8 * kMs;
  int looks = 0;
  while (now < until && looks < 1000) {
    step_at(std::max(now + 1, next));
    ++looks;
  }
  EXPECT_FALSE(is_open(other));
  EXPECT_LT(looks, 40);
}

TEST_F(Broker, LetsTheHolderDrainWhereItsEndIsUncertain) {
  const std::size_t a = add(50);
  const std::size_t b = add(50);
  wait_at_gate(a);
  step();
  launch(a, 1 * kMs);
  reports[a].tail_deviation_ns = 400 * kUs;
  wait_at_gate(b);
  step();
  step_at(now + 1 * kMs);
  EXPECT_FALSE(is_open(a));
  EXPECT_FALSE(is_open(b));
  now += 2 * kMs;
  complete(a);
  step();
  EXPECT_TRUE(is_open(b));
}

TEST_F(Broker, DoesNotWaitForEverForAHolderThatNeverDrains) {
  const std::size_t a = add(50);
  const std::size_t b = add(50);
  wait_at_gate(a);
  step();
  launch(a, 1 * kMs);
  reports[a].tail_deviation_ns = 400 * kUs;
  wait_at_gate(b);
  for (int i = 0; i < 100 && !is_open(b); ++i)
    step_at(std::max(now + 1, std::min(next, now + kMs)));
  EXPECT_TRUE(is_open(b));
  EXPECT_LT(now, 1 * kSecond + 30 * kMs);
}

TEST_F(Broker, RevokesAGrantThatIsNotUsedAndBansForLongerEachTime) {
  const std::size_t phantom = add(50);
  const std::size_t a = add(50);
  wait_at_gate(phantom);
  wait_at_gate(a);
  Nanoseconds banned_from = 0;
  std::vector<Nanoseconds> bans;
  for (int i = 0; i < 4000 && bans.size() < 11; ++i) {
    const bool before = arbiter.standing(now, phantom) == Standing::kBanned;
    step_at(std::max(now + 10 * kUs, std::min(next, now + 1 * kMs)));
    if (is_open(a)) {
      if (reports[a].in_flight > 0) complete(a);
      launch(a, 500 * kUs);
      reports[a].waiting = 1;
    }
    const bool after = arbiter.standing(now, phantom) == Standing::kBanned;
    if (!before && after) banned_from = now;
    if (before && !after) bans.push_back(now - banned_from);
  }
  ASSERT_GE(bans.size(), 10u);
  EXPECT_NEAR(static_cast<double>(bans[0]), 2e6, 1.1e6);
  EXPECT_GT(bans[5], 60 * kMs);
  EXPECT_GT(bans[9], 990 * kMs);
  EXPECT_LT(bans[9], 1010 * kMs);
  EXPECT_GE(arbiter.account(phantom).unused_grants, 10u);
}

TEST_F(Broker, FillsTheGapWhileASuccessorIsLate) {
  const std::size_t a = add(50);
  const std::size_t b = add(50);
  wait_at_gate(a);
  step();
  launch(a, 1 * kMs);
  wait_at_gate(b);
  step();
  step_at(now + 1 * kMs - 30 * kUs);
  ASSERT_TRUE(is_open(b));
  wait_at_gate(a);
  step_at(now + 200 * kUs);  // 100 us of grace after a's end are over
  EXPECT_TRUE(is_open(a));
  EXPECT_LE(arbiter.window(a).end, now + 1 * kMs);
  launch(b, 1 * kMs);
  step();
  EXPECT_FALSE(is_open(a));
  EXPECT_EQ(arbiter.account(a).fillers, 1u);
}

TEST_F(Broker, WhoPaysOffADebtWaitsNoLongerThanASecond) {
  const std::size_t a = add(98);
  const std::size_t b = add(2);
  wait_at_gate(a);
  wait_at_gate(b);
  const auto run_until_b_may = [&] {
    for (int i = 0; i < 3000 && !is_open(b); ++i) {
      if (is_open(a)) launch(a, 1 * kMs);
      reports[a].waiting = 1;
      step();
      now += 1 * kMs;
      if (reports[a].in_flight > 0) complete(a);
      step();
    }
  };
  run_until_b_may();
  launch(b, 90 * kMs);
  now += 90 * kMs;
  complete(b);
  wait_at_gate(b);
  step_at(now + 10 * kMs);
  ASSERT_FALSE(is_open(b));
  const Nanoseconds since = now;
  // 20 ms of its debt are not forgiven: at its share a second, of which a lost message and two
  // windows may still be to come.
  run_until_b_may();
  EXPECT_TRUE(is_open(b));
  EXPECT_GE(now - since, 880 * kMs);
  EXPECT_LE(now - since, 900 * kMs);
}

TEST_F(Broker, ACapKeepsNobodyWaitingForMoreThanASecondEither) {
  const std::size_t a = add(TenantTerms{.cores_percent = 2, .capped = true});
  wait_at_gate(a);
  step();
  launch(a, 90 * kMs);
  now += 90 * kMs;
  complete(a);
  wait_at_gate(a);
  step();
  ASSERT_FALSE(is_open(a));
  const Nanoseconds since = now;
  while (!is_open(a) && now - since < 2 * kSecond) step_at(next);
  EXPECT_TRUE(is_open(a));
  EXPECT_GE(now - since, 880 * kMs);
  EXPECT_LE(now - since, 900 * kMs);
}

TEST_F(Broker, PassesOverASilentHolder) {
  const std::size_t a = add(50);
  const std::size_t b = add(50);
  wait_at_gate(a);
  wait_at_gate(b);
  step();
  const std::size_t first = is_open(a) ? a : b;
  const std::size_t second = is_open(a) ? b : a;
  launch(first, 100 * kUs);
  step_at(now + 100 * kUs);
  complete(first);
  step_at(now + 50 * kUs);
  EXPECT_FALSE(is_open(second));
  step_at(now + 100 * kUs);  // 150 us of silence
  EXPECT_TRUE(is_open(second));
}

// Found by a fuzzer: work that is told to be in flight and never gets less.
TEST_F(Broker, AReportThatNeverComesToItsEndDoesNotKeepTheTurn) {
  const std::size_t liar = add(50);
  const std::size_t honest = add(50);
  launch(liar, 1 * kMs);
  step();
  reports[liar].in_flight = 1000;
  reports[liar].outstanding_ns = 10 * kSecond;
  reports[liar].longest_ns = 2 * kSecond;
  reports[liar].waiting = 1;
  wait_at_gate(honest);
  const Nanoseconds began = now;
  step();
  while (!is_open(honest) && now < began + 5 * kSecond) step_at(std::max(next, now + kUs));
  EXPECT_TRUE(is_open(honest));
  // A window, the longest kernel that is believed, one that nobody could foretell, and patience.
  EXPECT_LT(now - began, 230 * kMs);
}

TEST_F(Broker, OnlineClosesAllOthersAtItsFirstLaunchAndReleasesThem) {
  const std::size_t online =
      add(TenantTerms{.cores_percent = 50, .share_class = ShareClass::kOnline});
  const std::size_t a = add(50);
  wait_at_gate(a);
  step();
  EXPECT_TRUE(is_open(online));
  EXPECT_TRUE(is_open(a));
  EXPECT_TRUE(arbiter.window(a).limited);  // never alone while an online lease exists
  launch(online, 1 * kMs);
  step();
  EXPECT_FALSE(is_open(a));
  EXPECT_EQ(arbiter.standing(now, a), Standing::kPausedByOnline);
  step_at(now + 1 * kMs);
  complete(online);
  step();
  const Nanoseconds released = now + 100 * kMs;
  step_at(released - 1 * kMs);
  EXPECT_FALSE(is_open(a));
  for (int i = 0; i < 10 && !is_open(a); ++i) step_at(next);
  EXPECT_TRUE(is_open(a));
  EXPECT_NEAR(static_cast<double>(now), static_cast<double>(released), 2e6);
}

TEST_F(Broker, AutomaticReleaseFollowsTheLongestOfflineKernel) {
  arbiter.set_gpu_terms(now, {.release_auto = true});
  const std::size_t online = add(TenantTerms{.share_class = ShareClass::kOnline});
  const std::size_t a = add(50);
  reports[a].longest_ns = 1 * kMs;
  wait_at_gate(a);
  launch(online, 1 * kMs);
  step_at(now + 1 * kMs);
  complete(online);
  step();
  const Nanoseconds from = now;
  for (int i = 0; i < 10 && !is_open(a); ++i) step_at(next);
  EXPECT_NEAR(static_cast<double>(now - from), 4e6, 0.5e6);
}

TEST_F(Broker, APriorityDecidesWhoGoesFirst) {
  const std::size_t a = add(50);
  const std::size_t b = add(TenantTerms{.cores_percent = 50, .priority = 1});
  wait_at_gate(a);
  wait_at_gate(b);
  step();
  EXPECT_TRUE(is_open(b));
  EXPECT_FALSE(is_open(a));
}

TEST_F(Broker, ANativeGpuIsOpenToAll) {
  arbiter.set_gpu_terms(now, {.policy = Policy::kNative});
  const std::size_t a = add(50);
  const std::size_t b = add(50);
  step();
  EXPECT_TRUE(is_open(a) && is_open(b));
  EXPECT_FALSE(arbiter.window(a).limited || arbiter.window(b).limited);
}

TEST_F(Broker, ABannedTenantIsLetInAgainByTheTimer) {
  const std::size_t a = add(50);
  wait_at_gate(a);
  arbiter.ban(now, a, 50 * kMs);
  step();
  EXPECT_FALSE(is_open(a));
  EXPECT_EQ(next, now + 50 * kMs);
  step_at(next);
  EXPECT_TRUE(is_open(a));
}

TEST_F(Broker, AQueueOfLongKernelsIsNotTakenForAShortOneOnceItsHeadHasRun) {
  const auto [a, b] = holder_and_other(10 * kMs, 2 * kMs);
  reports[a].in_flight = 2;
  reports[a].outstanding_ns = 20 * kMs;
  reports[a].longest_ns = 10 * kMs;
  reports[a].waiting = 1;
  wait_at_gate(b);
  step();
  const std::uint32_t number = arbiter.window(a).number;
  step_at(now + 9'900 * kUs);  // the second one is all to come
  EXPECT_FALSE(is_open(b));
  EXPECT_EQ(arbiter.window(a).number, number);  // and no third is let in
  EXPECT_GE(next, now + 50 * kUs);
}

TEST_F(Broker, ASlotIsUsedAgainWithoutItsPast) {
  const std::size_t a = add(50);
  wait_at_gate(a);
  step();
  launch(a, 1 * kMs);
  step_at(now + 1 * kMs);
  const std::uint32_t number = arbiter.window(a).number;
  arbiter.remove(now, a);
  reports[a] = {};
  const std::size_t b = add(30);
  EXPECT_EQ(b, a);
  EXPECT_EQ(arbiter.account(b).charged_ns, 0);
  EXPECT_FALSE(is_open(b));
  EXPECT_GT(arbiter.window(b).number, number);  // an old word can never be mistaken for a new one
}

TEST_F(Broker, SurvivesReportsThatMakeNoSense) {
  const std::size_t a = add(50);
  const std::size_t b = add(50);
  TenantReport wild;
  wild.busy_ns = INT64_MAX;
  wild.busy_since = wild.busy_until = wild.last_launch = wild.since = INT64_MAX;
  wild.in_flight = wild.inside = UINT32_MAX;
  wild.outstanding_ns = wild.head_ns = wild.longest_ns = wild.lead_ns = INT64_MAX;
  wild.tail_deviation_ns = INT64_MAX;
  reports[a] = wild;
  wait_at_gate(b);
  bool served = false;
  for (int i = 0; i < 2000 && !served; ++i) {
    step_at(std::max(now + 1, std::min(next, now + 1 * kMs)));
    served = is_open(b);
  }
  EXPECT_TRUE(served);
}

TEST_F(Broker, SurvivesRandomWordsAndServesTheOther) {
  const std::size_t a = add(50);
  const std::size_t b = add(50);
  std::mt19937_64 random(7);
  Nanoseconds open_for = 0;
  const Nanoseconds begin = now;
  while (now < begin + 2 * kSecond) {
    std::uint64_t words[kReportWords];
    for (std::uint64_t& word : words) word = random() >> random() % 64;
    reports[a] = report_from(words);
    if (random() % 3 == 0) reports[a].busy_since = -static_cast<Nanoseconds>(random() >> 1);
    if (is_open(b) && reports[b].in_flight == 0) launch(b, 500 * kUs);
    if (!is_open(b) && reports[b].in_flight == 0) wait_at_gate(b);
    const Nanoseconds before = now;
    const bool was_open = is_open(b);
    step_at(now + 100 * kUs);
    if (was_open) open_for += now - before;
    if (reports[b].in_flight > 0 && now - reports[b].last_launch >= 500 * kUs) complete(b);
  }
  EXPECT_GT(open_for, 900 * kMs);
}

}  // namespace
}  // namespace aliquot::gate
