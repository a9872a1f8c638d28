// The tenant's side: estimates, the limiter, what it tells.
#include "gate/tenant.h"

#include <gtest/gtest.h>

#include <memory>

namespace aliquot::gate {
namespace {

constexpr Nanoseconds kUs = kMicrosecond;
constexpr Nanoseconds kMs = kMillisecond;
using Answer = TenantGate::Answer;

Window alone() { return {.open = true, .limited = false, .number = 1, .end = 1'000 * kSecond}; }
Window until(Nanoseconds end, std::uint32_t number = 1) {
  return {.open = true, .limited = true, .number = number, .end = end, .opened_at = 1};
}

struct Tenant : ::testing::Test {
  std::unique_ptr<TenantGate> gate = std::make_unique<TenantGate>();
  std::uint64_t kernel = kernel_key({.function = 7});

  void launch(Nanoseconds now, const Window& window, int count, Nanoseconds each) {
    for (int i = 0; i < count; ++i) gate->launched(now, window, kernel, each);
  }
  // Uses up the one kernel that a window admits in any case.
  void use_window(const Window& window) {
    gate->may_launch(0, window, 1);
    gate->abandoned(1);
  }
  Answer asked(Nanoseconds now, const Window& window, Nanoseconds estimate) {
    const Answer answer = gate->may_launch(now, window, estimate).answer;
    if (answer == Answer::kGo) gate->abandoned(estimate);
    return answer;
  }
};

TEST_F(Tenant, WaitsAtAClosedGate) { EXPECT_EQ(asked(0, Window{}, 10 * kUs), Answer::kGate); }

TEST_F(Tenant, AloneQueuesFiveMilliseconds) {
  launch(0, alone(), 100, 50 * kUs);
  EXPECT_EQ(asked(0, alone(), 50 * kUs), Answer::kGo);
  gate->launched(0, alone(), kernel, 50 * kUs);
  const TenantGate::Verdict said = gate->may_launch(0, alone(), 50 * kUs);
  EXPECT_EQ(said.answer, Answer::kLimiter);
  EXPECT_EQ(said.wait_ns, 5050 * kUs - 3750 * kUs);  // until three quarters are left
}

TEST_F(Tenant, AloneLooksAtTheClockOncePerMillisecondOfWork) {
  int quick = 0;
  while (gate->quick(50 * kUs)) ++quick;
  EXPECT_EQ(quick, 20);
  EXPECT_EQ(gate->work_left(0), 1 * kMs);  // nobody marked it, but it is in flight
  EXPECT_FALSE(gate->silent(1 * kSecond));
  EXPECT_EQ(gate->take_unmarked(), 1 * kMs);  // goes to the marked launch
  EXPECT_TRUE(gate->quick(50 * kUs));
}

TEST_F(Tenant, BesideACompetitorQueuesSixHundredMicroseconds) {
  use_window(until(10 * kMs));
  launch(0, until(10 * kMs), 13, 50 * kUs);  // 650 us
  const TenantGate::Verdict said = gate->may_launch(0, until(10 * kMs), 50 * kUs);
  EXPECT_EQ(said.answer, Answer::kLimiter);
  EXPECT_EQ(said.wait_ns, 350 * kUs);  // just in time: when 300 us are left
  EXPECT_EQ(asked(50 * kUs, until(10 * kMs), 50 * kUs), Answer::kGo);
}

TEST_F(Tenant, BelievesOfTheTimeGoneAsMuchAsTheHeadTakes) {
  gate->launched(0, until(100 * kMs), kernel, 5 * kMs);
  launch(0, until(100 * kMs), 9, 50 * kUs);
  EXPECT_EQ(gate->work_left(3 * kMs),
            5450 * kUs - 545 * kUs);  // the mean: which is first is unknown
  gate->head_is(5 * kMs);
  EXPECT_EQ(gate->work_left(3 * kMs), 2450 * kUs);
  EXPECT_EQ(gate->work_left(9 * kMs), 450 * kUs);  // a late head melts nothing else away
}

TEST_F(Tenant, TellsItsPeersWhatItIsAboutToLaunch) {
  EXPECT_EQ(gate->may_launch(3 * kMs, until(100 * kMs), 5 * kMs).answer, Answer::kGo);
  EXPECT_EQ(gate->report().in_flight, 0u);
  const TenantReport told = gate->report_with_promises(3 * kMs);
  EXPECT_EQ(told.in_flight, 1u);
  EXPECT_EQ(told.work_left(4 * kMs), 4 * kMs);
  gate->abandoned(5 * kMs);
  EXPECT_EQ(gate->report_with_promises(3 * kMs), gate->report());
}

TEST_F(Tenant, HasOneFreeKernelInALimitedWindow) {
  EXPECT_FALSE(gate->has_free_kernel(alone()));
  EXPECT_TRUE(gate->has_free_kernel(until(10 * kMs, 4)));
  use_window(until(10 * kMs, 4));
  EXPECT_FALSE(gate->has_free_kernel(until(10 * kMs, 4)));
  EXPECT_TRUE(gate->has_free_kernel(until(10 * kMs, 5)));
}

TEST_F(Tenant, QueuesLessWhileAnOnlineLeaseExists) {
  Window window = until(10 * kMs);
  window.beside_online = true;
  use_window(window);
  launch(0, window, 9, 50 * kUs);
  EXPECT_EQ(asked(0, window, 50 * kUs), Answer::kLimiter);
}

TEST_F(Tenant, AWindowAdmitsOneKernelHoweverLong) {
  EXPECT_EQ(gate->may_launch(0, until(1 * kMs), 50 * kMs).answer, Answer::kGo);
  EXPECT_EQ(asked(0, until(1 * kMs), 50 * kMs), Answer::kGate);  // another thread, same moment
  gate->launched(0, until(1 * kMs), kernel, 50 * kMs);
  EXPECT_EQ(asked(0, until(1 * kMs), 50 * kMs), Answer::kGate);
  EXPECT_EQ(asked(60 * kMs, until(61 * kMs, 2), 50 * kMs), Answer::kGo);
}

TEST_F(Tenant, StopsWhenLessThanHalfAKernelFits) {
  const Window window = until(1 * kMs);
  use_window(window);
  launch(0, window, 1, 100 * kUs);
  EXPECT_EQ(asked(0, window, 1'800 * kUs), Answer::kGo);
  EXPECT_EQ(asked(0, window, 1'802 * kUs), Answer::kGate);
  EXPECT_EQ(asked(1 * kMs, window, 1), Answer::kGate);
}

TEST_F(Tenant, TakesAnUnknownKernelForALongOne) {
  EXPECT_EQ(gate->estimate(kernel), 5 * kMs);
  gate->measured(kernel, 20 * kUs);
  EXPECT_EQ(gate->estimate(kernel), 20 * kUs);
}

TEST_F(Tenant, ALateKernelDoesNotMeltTheRest) {
  launch(0, until(100 * kMs), 4, 100 * kUs);
  EXPECT_EQ(gate->work_left(50 * kUs), 350 * kUs);
  EXPECT_EQ(gate->work_left(90 * kMs), 300 * kUs);  // the head's estimate and no more
}

TEST_F(Tenant, CountsFromTheAnnouncedEndOfThePredecessor) {
  Window window = until(10 * kMs);
  window.start = 300 * kUs;
  launch(100 * kUs, window, 2, 200 * kUs);
  EXPECT_EQ(gate->work_left(300 * kUs), 400 * kUs);
  EXPECT_EQ(gate->work_left(400 * kUs), 300 * kUs);
}

TEST_F(Tenant, CountsWhatOtherProcessesOfTheLeaseHaveInFlight) {
  gate->set_others({.in_flight = 3, .work_left = 700 * kUs});
  use_window(until(10 * kMs));
  EXPECT_EQ(asked(0, until(10 * kMs), 50 * kUs), Answer::kLimiter);
}

TEST_F(Tenant, TellsTheBrokerOfTheFirstLaunchInAWindow) {
  Window window = until(10 * kMs);
  window.opened_at = 100 * kUs;
  EXPECT_TRUE(gate->launched(150 * kUs, window, kernel, 10 * kUs));
  EXPECT_FALSE(gate->launched(160 * kUs, window, kernel, 10 * kUs));
  EXPECT_EQ(gate->report().lead_ns, (80 * kUs * 4 + 50 * kUs) / 5);
}

TEST_F(Tenant, WaitingForRoomBehindAnotherProcessIsNoLead) {
  Window window = until(10 * kMs);
  window.opened_at = 100 * kUs;
  gate->set_others({.in_flight = 1, .work_left = 3 * kMs, .last_launch = 150 * kUs});
  EXPECT_FALSE(gate->launched(3 * kMs, window, kernel, 10 * kUs));
  EXPECT_EQ(gate->report().lead_ns, 80 * kUs);
  window.opened_at = 5 * kMs;  // the next one it enters first
  EXPECT_TRUE(gate->launched(5 * kMs + 30 * kUs, window, kernel, 10 * kUs));
  EXPECT_EQ(gate->report().lead_ns, (80 * kUs * 4 + 30 * kUs) / 5);
}

TEST_F(Tenant, OnlineTellsOfEachBurst) {
  gate->set_online(true);
  EXPECT_TRUE(gate->launched(1 * kMs, alone(), kernel, 10 * kUs));
  EXPECT_FALSE(gate->launched(1 * kMs, alone(), kernel, 10 * kUs));
  gate->completed(2 * kMs, 2, 20 * kUs);
  EXPECT_FALSE(gate->launched(2 * kMs + 100 * kUs, alone(), kernel, 10 * kUs));
  gate->completed(3 * kMs, 1, 10 * kUs);
  EXPECT_TRUE(gate->launched(4 * kMs, alone(), kernel, 10 * kUs));
}

TEST_F(Tenant, MeasuresTheTimeInWhichItsWorkHadBegun) {
  launch(0, until(10 * kMs), 2, 100 * kUs);
  gate->began(40 * kUs);
  EXPECT_EQ(gate->report().busy(90 * kUs), 50 * kUs);
  gate->completed(140 * kUs, 1, 100 * kUs);
  gate->completed(240 * kUs, 1, 100 * kUs);
  EXPECT_EQ(gate->report().busy(5 * kMs), 200 * kUs);
  EXPECT_EQ(gate->report().busy_until, 240 * kUs);
  launch(1 * kMs, until(10 * kMs), 1, 100 * kUs);
  EXPECT_EQ(gate->report().busy_until, 240 * kUs);  // launched is not begun
  gate->began(2 * kMs);
  EXPECT_EQ(gate->report().busy_until, 0);
}

TEST_F(Tenant, IsSilentOnlyWithNoThreadOnItsWay) {
  launch(0, until(10 * kMs), 1, 100 * kUs);
  gate->completed(100 * kUs, 1, 100 * kUs);
  EXPECT_FALSE(gate->silent(200 * kUs));
  EXPECT_TRUE(gate->silent(250 * kUs));
  gate->enter_launch();
  EXPECT_FALSE(gate->silent(250 * kUs));
  gate->leave_launch();
  gate->wait_at_gate();
  EXPECT_FALSE(gate->silent(250 * kUs));
}

TEST_F(Tenant, IsDrainedWhenNothingIsInFlightAndTheBrokerCares) {
  launch(0, until(1 * kMs), 1, 100 * kUs);
  EXPECT_FALSE(gate->drained(2 * kMs, until(1 * kMs)));
  gate->completed(100 * kUs, 1, 100 * kUs);
  EXPECT_FALSE(gate->drained(200 * kUs, until(1 * kMs)));
  EXPECT_TRUE(gate->drained(1 * kMs, until(1 * kMs)));
  EXPECT_TRUE(gate->drained(200 * kUs, Window{}));
}

TEST_F(Tenant, LearnsThatItsStreamsOverlap) {
  // Two streams side by side: each millisecond of wall clock holds 2 ms of durations.
  Nanoseconds now = 0;
  for (int i = 0; i < 50; ++i) {
    launch(now, alone(), 2, 1 * kMs);
    gate->began(now);
    now += 1 * kMs;
    gate->completed(now, 2, 2 * kMs);
    gate->measured(kernel, 1 * kMs);
    gate->measured(kernel, 1 * kMs);
  }
  launch(now, alone(), 2, 1 * kMs);
  EXPECT_NEAR(static_cast<double>(gate->work_left(now)), 1e6, 1e5);
}

TEST(KernelKey, DependsOnFunctionGridAndBlock) {
  const KernelShape shape{.function = 1, .grid = {2, 3, 4}, .block = {5, 6, 7}};
  KernelShape other = shape;
  EXPECT_EQ(kernel_key(shape), kernel_key(other));
  other.grid[2] = 5;
  EXPECT_NE(kernel_key(shape), kernel_key(other));
  other = shape;
  other.block[0] = 6;
  EXPECT_NE(kernel_key(shape), kernel_key(other));
}

TEST(Estimates, FollowAChangeAndKnowTheirDeviation) {
  Estimates estimates;
  for (int i = 0; i < 10; ++i) estimates.measured(1, 100 * kUs);
  EXPECT_EQ(estimates.of(1).deviation_ns, 0);
  for (int i = 0; i < 20; ++i) estimates.measured(1, 200 * kUs);
  EXPECT_NEAR(static_cast<double>(estimates.of(1).duration_ns), 200e3, 2e3);
  EXPECT_GT(estimates.of(1).deviation_ns, 0);
}

TEST(Estimates, SurviveMoreKernelsThanTheyHold) {
  Estimates estimates;
  for (std::uint64_t key = 1; key <= 100'000; ++key) {
    estimates.measured(key, static_cast<Nanoseconds>(key));
    EXPECT_EQ(estimates.of(key).duration_ns, static_cast<Nanoseconds>(static_cast<float>(key)));
  }
  EXPECT_EQ(estimates.of(200'000).duration_ns, 0);
}

TEST(Words, CarryAWindowExactly) {
  const Window window{.open = true,
                      .limited = true,
                      .beside_online = true,
                      .number = 0xfffffffe,
                      .end = 1'234'567'890'123,
                      .start = 5,
                      .opened_at = 77};
  std::uint64_t words[kWindowWords];
  store_words(window, words);
  EXPECT_EQ(window_from(words), window);
  EXPECT_FALSE(is_open_alone(words[0]));
  store_words(alone(), words);
  EXPECT_TRUE(is_open_alone(words[0]));
  store_words(Window{}, words);
  EXPECT_FALSE(is_open_alone(words[0]));
}

TEST(Words, CarryAReportInMicroseconds) {
  const TenantReport report{.busy_ns = 123'456'789'012,
                            .busy_since = 99,
                            .last_launch = 98,
                            .since = 97,
                            .in_flight = 1000,
                            .waiting = 5,
                            .inside = 6,
                            .outstanding_ns = 612 * kUs,
                            .head_ns = 50 * kMs,
                            .tail_deviation_ns = 3 * kUs,
                            .longest_ns = 1'500 * kMs,
                            .lead_ns = 81 * kUs};
  std::uint64_t words[kReportWords];
  store_words(report, words);
  EXPECT_EQ(report_from(words), report);
  for (const TenantReport& idle :
       {TenantReport{}, TenantReport{.busy_ns = 5, .busy_until = 4711}}) {
    store_words(idle, words);
    EXPECT_EQ(report_from(words), idle);
  }
}

TEST(Words, BoundWhatDoesNotFit) {
  const TenantReport report{.in_flight = UINT32_MAX,
                            .waiting = UINT32_MAX,
                            .inside = UINT32_MAX,
                            .outstanding_ns = INT64_MAX,
                            .head_ns = -1,
                            .longest_ns = 1'000 * kSecond};
  std::uint64_t words[kReportWords];
  store_words(report, words);
  const TenantReport read = report_from(words);
  EXPECT_EQ(read.in_flight, (1u << 24) - 1);
  EXPECT_EQ(read.waiting, (1u << 20) - 1);
  EXPECT_EQ(read.head_ns, 0);
  EXPECT_EQ(read.longest_ns, 2'097'151 * kUs);
}

TEST_F(Tenant, MeasuresAKnownKernelOnceAMillisecond) {
  EXPECT_TRUE(gate->wants_duration(0, alone(), kernel));
  gate->measured(kernel, 50 * kUs);
  EXPECT_TRUE(gate->wants_duration(10 * kMs, alone(), kernel));
  gate->measures(10 * kMs);
  EXPECT_FALSE(gate->wants_duration(10 * kMs + 999 * kUs, alone(), kernel));
  EXPECT_TRUE(gate->wants_duration(11 * kMs, alone(), kernel));
}

TEST_F(Tenant, DoesNotMeasureWhatBeginsBehindTheTenantBefore) {
  gate->measured(kernel, 50 * kUs);
  Window window = until(20 * kMs);
  window.opened_at = 10 * kMs;
  EXPECT_FALSE(gate->wants_duration(10 * kMs + 200 * kUs, window, kernel));
  EXPECT_TRUE(gate->wants_duration(10 * kMs + 201 * kUs, window, kernel));
  gate->launched(10 * kMs, window, kernel, 50 * kUs);  // behind own work nothing comes between
  EXPECT_TRUE(gate->wants_duration(10 * kMs + 1, window, kernel));
}

TEST_F(Tenant, MeasuresKernelsThatFillTheirWindowsWhereverTheyBegin) {
  gate->measured(kernel, 100 * kMs);  // the first time behind somebody else's
  Window window = until(80 * kMs);
  window.opened_at = 10 * kMs;
  EXPECT_TRUE(gate->wants_duration(10 * kMs, window, kernel));
}

TEST_F(Tenant, DoesNotMeasureWhatBeginsInAnotherProcessesSlice) {
  gate->set_others({.in_flight = 3, .work_left = 1 * kMs});
  EXPECT_TRUE(
      gate->wants_duration(5 * kMs, alone(), kernel));  // never measured: better than nothing
  gate->measured(kernel, 5 * kUs);
  EXPECT_FALSE(gate->wants_duration(5 * kMs, alone(), kernel));
  gate->launched(5 * kMs, alone(), kernel, 5 * kUs);
  EXPECT_TRUE(gate->wants_duration(5 * kMs, alone(), kernel));
}

}  // namespace
}  // namespace aliquot::gate
