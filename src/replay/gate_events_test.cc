// What happens to the shares after a tenant comes, leaves, is resized or cheats. Simulated.
#include <gtest/gtest.h>

#include <algorithm>

#include "replay/gate_cells.h"
#include "replay/gate_twin.h"

namespace aliquot::replay {
namespace {

constexpr Nanoseconds kUs = kMicrosecond;
constexpr Nanoseconds kMs = kMillisecond;
constexpr Nanoseconds kEvent = 2 * kSecond;

TwinTenant saturating(double cores, Nanoseconds kernel) {
  TwinTenant tenant;
  tenant.terms.cores_percent = cores;
  tenant.mix = {.classes = {{kernel, 1.0}}};
  tenant.depth = 1000;
  return tenant;
}

enum class Change { kArrival, kLeave, kResize };

struct Case {
  Change change;
  std::size_t tenants;
  Nanoseconds kernel;
};

struct Fluid {
  std::vector<TwinTenant> tenants;
  std::vector<double> percent;  // after the event
};

Fluid case_of(const Case& c) {
  const auto n = static_cast<double>(c.tenants);
  Fluid fluid;
  fluid.tenants.assign(c.tenants, saturating(100 / n, c.kernel));
  fluid.percent.assign(c.tenants, 100 / n);
  TwinTenant& first = fluid.tenants[0];
  switch (c.change) {
    case Change::kArrival:
      first.arrives = kEvent;
      break;
    case Change::kLeave:
      first.leaves = kEvent;
      fluid.percent.assign(c.tenants, 100 / (n - 1));
      fluid.percent[0] = 0;
      break;
    case Change::kResize:
      // Its guarantee is three times what it was; together they are overcommitted.
      first.resized_at = kEvent;
      first.resized = first.terms;
      first.resized.cores_percent = std::min(100.0, 300 / n);
      const double sum = first.resized.cores_percent + 100 / n * (n - 1);
      for (double& percent : fluid.percent) percent = 100 / n / sum * 100;
      fluid.percent[0] = first.resized.cores_percent / sum * 100;
      break;
  }
  return fluid;
}

class Event : public ::testing::TestWithParam<Case> {};

// I1: from the event on, service never strays further from the fluid share than two windows and
// three kernels, however long the run.
void stays_near_the_fluid_share(const Case& c, std::uint64_t seed, Nanoseconds duration) {
  const Fluid fluid = case_of(c);
  TwinOptions options;
  options.duration = duration;
  options.seed = seed;
  GateTwin twin(options, fluid.tenants);
  twin.run();
  const auto at = static_cast<std::size_t>(kEvent / (10 * kMs));
  const double k = static_cast<double>(c.kernel) / 1e6;
  const double bound = 2 * std::max(10.0, std::max(k, std::min(2.1 * k, 11.0))) + 3 * k;
  double worst = 0;
  for (std::size_t j = at; j < twin.samples(0).size(); ++j) {
    std::vector<double> had;
    for (std::size_t i = 0; i < fluid.tenants.size(); ++i)
      had.push_back(twin.samples(i)[j] - twin.samples(i)[at]);
    worst = std::max(worst, largest_lag(had, fluid.percent));
  }
  EXPECT_LE(worst, bound) << "seed " << seed;
}

TEST_P(Event, LeavesEachTenantNearItsFluidShare) {
  for (const std::uint64_t seed : {1, 2, 3})
    stays_near_the_fluid_share(GetParam(), seed, 6 * kSecond);
}

TEST(LongAfterAnEvent, EachTenantIsStillNearItsFluidShare) {
  for (const Nanoseconds kernel : {50 * kUs, 500 * kUs, 5 * kMs, 50 * kMs})
    stays_near_the_fluid_share({Change::kArrival, 4, kernel}, 1, 60 * kSecond);
}

class Arrival : public ::testing::TestWithParam<Case> {};

TEST_P(Arrival, LetsTheNewcomerProgressSoon) {
  const Case& c = GetParam();
  GateTwin twin(TwinOptions{}, case_of(c).tenants);
  twin.run();
  const Nanoseconds soon = std::max(100 * kMs, 2 * c.kernel);
  EXPECT_GT(twin.share(0, kEvent, kEvent + soon), 0);
}

std::vector<Case> cases(std::initializer_list<Change> changes) {
  std::vector<Case> all;
  for (const Change change : changes) {
    for (const std::size_t tenants : {2u, 4u, 8u, 16u}) {
      for (const Nanoseconds kernel : {50 * kUs, 500 * kUs, 5 * kMs, 50 * kMs}) {
        all.push_back({change, tenants, kernel});
      }
    }
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(
    All, Event, ::testing::ValuesIn(cases({Change::kArrival, Change::kLeave, Change::kResize})));
INSTANTIATE_TEST_SUITE_P(All, Arrival, ::testing::ValuesIn(cases({Change::kArrival})));

// Shares 20 (the cheat), 30 and 50 of a GPU.
struct Cheats : ::testing::TestWithParam<Nanoseconds> {
  std::vector<TwinTenant> tenants = {saturating(20, GetParam()), saturating(30, GetParam()),
                                     saturating(50, GetParam())};
  GateTwin run() {
    GateTwin twin(TwinOptions{}, tenants);
    twin.run();
    return twin;
  }
  void is_found_soon_and_ending_it_restores_the_others() {
    tenants[0].arrives = 2 * kSecond;
    TwinOptions options;
    options.audited = true;
    options.ends_offenders = true;
    GateTwin twin(options, tenants);
    twin.run();
    const Nanoseconds soon = 2 * options.gpu.sample_period + 1 * kSecond;
    ASSERT_LE(twin.found_at(0), 2 * kSecond + soon);
    EXPECT_EQ(twin.found_at(1), engine::kNever);
    EXPECT_EQ(twin.found_at(2), engine::kNever);
    const Nanoseconds after = twin.found_at(0) + 500 * kMs;
    EXPECT_NEAR(twin.share(1, after, 11 * kSecond), 37.5, 1);
    EXPECT_NEAR(twin.share(2, after, 11 * kSecond), 62.5, 1);
  }
};

// The others have 30 and 50 % by right.
void costs_others_at_most(double points, const GateTwin& twin) {
  EXPECT_GE(twin.share(1), 30 - points);
  EXPECT_GE(twin.share(2), 50 - points);
}

TEST_P(Cheats, ReportingHalfOfTheUseGainsNothing) {
  tenants[0].cheat = Cheat::kReportsLess;
  tenants[0].report_factor = 0.5;
  const GateTwin twin = run();
  EXPECT_LE(twin.share(0), 21);
  costs_others_at_most(1, twin);
  EXPECT_GT(twin.account(0).false_reports, 0u);
}

TEST_P(Cheats, ReportingNoUseGainsNothing) {
  tenants[0].cheat = Cheat::kReportsLess;
  tenants[0].report_factor = 0;
  const GateTwin twin = run();
  EXPECT_LE(twin.share(0), 21);
  costs_others_at_most(1, twin);
}

TEST_P(Cheats, RandomReportsCostOthersAtMostAPoint) {
  tenants[0].cheat = Cheat::kRandomReports;
  const GateTwin twin = run();
  costs_others_at_most(1, twin);
}

TEST_P(Cheats, PhantomDemandCostsOthersAtMostAPoint) {
  tenants[0].cheat = Cheat::kPhantomDemand;
  const GateTwin twin = run();
  // The others divide the rest 3 : 5.
  EXPECT_GE(twin.share(1), 37.5 - 1);
  EXPECT_GE(twin.share(2), 62.5 - 1);
}

// Its report stays as it was, with work in flight and threads at the gate.
TEST_P(Cheats, AStoppedTenantCostsOthersAtMostThreePointsAndThenOne) {
  for (Nanoseconds at = 3 * kSecond; at < 3 * kSecond + 200 * kMs; at += 11 * kMs) {
    tenants[0].stops_at = at;
    const GateTwin twin = run();
    const Nanoseconds banned = at + 1 * kSecond;
    EXPECT_GE(twin.share(1, 1 * kSecond, 11 * kSecond), 30 + 7.5 * 0.8 - 3) << at;
    EXPECT_GE(twin.share(1, banned, 11 * kSecond), 37.5 - 1) << at;
    EXPECT_GE(twin.share(2, banned, 11 * kSecond), 62.5 - 1) << at;
  }
}

TEST_P(Cheats, AReportThatNeverDrainsCostsOthersAtMostThreePointsAndThenOne) {
  tenants[0].cheat = Cheat::kNeverDrains;
  const GateTwin twin = run();
  EXPECT_GE(twin.share(1, 0, 10 * kSecond), 27);
  EXPECT_GE(twin.share(2, 0, 10 * kSecond), 47);
  costs_others_at_most(1, twin);
}

TEST_P(Cheats, SixteenProcessesAreOneTenant) {
  tenants[0].processes = 16;
  tenants[0].depth = 64;
  const GateTwin twin = run();
  EXPECT_NEAR(twin.share(0), 20, 1);
  costs_others_at_most(1, twin);
}

TEST_P(Cheats, AHiddenQueueOfEightKernelsCostsOthersAtMostThreePoints) {
  tenants[0].cheat = Cheat::kHidesQueue;
  tenants[0].depth = 8;
  const GateTwin twin = run();
  costs_others_at_most(3, twin);
}

// It claims the time of its whole queue, and tells the arbiter of a fraction of it.
TEST_P(Cheats, AQueueOfEightKernelsToldAsShortCostsOthersAtMostThreePoints) {
  tenants[0].cheat = Cheat::kShortensTail;
  tenants[0].depth = 8;
  const GateTwin twin = run();
  costs_others_at_most(3, twin);
}

TEST_P(Cheats, AHiddenQueueOfAThousandIsFoundSoonAndEndingItRestoresTheOthers) {
  tenants[0].cheat = Cheat::kHidesQueue;
  is_found_soon_and_ending_it_restores_the_others();
}

TEST_P(Cheats, IgnoringTheGateIsFoundSoonAndEndingItRestoresTheOthers) {
  tenants[0].cheat = Cheat::kIgnoresGate;
  is_found_soon_and_ending_it_restores_the_others();
}

TEST(Audit, NeverSuspectsTheHonest) {
  TwinOptions options;
  options.audited = true;
  for (const Nanoseconds kernel : {50 * kUs, 500 * kUs, 5 * kMs, 50 * kMs}) {
    std::vector<TwinTenant> tenants = {saturating(5, kernel), saturating(35, kernel),
                                       saturating(60, kernel)};
    tenants[1].processes = 2;
    tenants[2].arrives = 3 * kSecond;
    tenants[2].behaviour = Behaviour::kTraining;
    tenants[2].burst_kernels = 30;
    tenants[2].gap = 30 * kMs;
    GateTwin twin(options, tenants);
    twin.run();
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(twin.found_at(i), engine::kNever) << kernel << " ns, tenant " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, Cheats, ::testing::Values(500 * kUs, 5 * kMs));

}  // namespace
}  // namespace aliquot::replay
