// The compute gate in virtual time: what is promised beside the matrix. Simulated.
#include "replay/gate_twin.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace aliquot::replay {
namespace {

constexpr Nanoseconds kUs = kMicrosecond;
constexpr Nanoseconds kMs = kMillisecond;

KernelMix kernels(Nanoseconds duration) { return {.classes = {{duration, 1.0}}}; }

TwinTenant saturating(double cores, Nanoseconds kernel, int depth = 64) {
  TwinTenant tenant;
  tenant.terms.cores_percent = cores;
  tenant.mix = kernels(kernel);
  tenant.depth = depth;
  return tenant;
}

TwinTenant requests(double cores, double per_second, int count, Nanoseconds kernel) {
  TwinTenant tenant = saturating(cores, kernel);
  tenant.behaviour = Behaviour::kRequests;
  tenant.requests_per_second = per_second;
  tenant.burst_kernels = count;
  return tenant;
}

TwinOptions with(gate::Policy policy) {
  TwinOptions options;
  options.terms.policy = policy;
  return options;
}

Nanoseconds percentile(std::vector<Nanoseconds> values, double p) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const auto at = static_cast<std::size_t>(p * static_cast<double>(values.size()));
  return values[std::min(values.size() - 1, at)];
}

GateTwin ran(const TwinOptions& options, std::vector<TwinTenant> tenants) {
  GateTwin twin(options, std::move(tenants));
  twin.run();
  return twin;
}

TEST(GateTwin, SameSeedSameRun) {
  TwinOptions options;
  options.duration = 3 * kSecond;
  const std::vector<TwinTenant> tenants = {saturating(30, 500 * kUs), saturating(70, 50 * kUs)};
  const GateTwin first = ran(options, tenants);
  const GateTwin second = ran(options, tenants);
  EXPECT_EQ(first.samples(0), second.samples(0));
  EXPECT_EQ(first.broker_steps(), second.broker_steps());
}

TEST(GateTwin, WithoutTheGateTheHardwareSharesEqually) {
  TwinOptions options;
  options.gated = false;
  const GateTwin twin = ran(options, {saturating(30, 500 * kUs), saturating(70, 500 * kUs)});
  EXPECT_NEAR(twin.share(0), twin.share(1), 0.2);
  EXPECT_NEAR(twin.busy_percent(), 95.2, 0.2);
}

TEST(GateTwin, ATenantAloneLosesNothing) {
  for (const Nanoseconds kernel : {5 * kUs, 50 * kUs, 500 * kUs, 5 * kMs, 50 * kMs}) {
    for (const int depth : {1, 64}) {
      TwinOptions options;
      options.host.tail_probability = 0.01;
      const double gated = ran(options, {saturating(50, kernel, depth)}).share(0);
      options.gated = false;
      const double bare = ran(options, {saturating(50, kernel, depth)}).share(0);
      EXPECT_GE(gated, bare * 0.995) << kernel << " ns, depth " << depth;
    }
  }
}

TEST(GateTwin, AFixedShareAloneIsHeldWithinAPoint) {
  for (const double cap : {5.0, 10.0, 30.0, 50.0, 80.0, 95.0}) {
    for (const Nanoseconds kernel : {50 * kUs, 500 * kUs, 5 * kMs, 50 * kMs}) {
      const GateTwin twin = ran(with(gate::Policy::kFixed), {saturating(cap, kernel)});
      EXPECT_NEAR(twin.share(0), cap, 1.0) << kernel << " ns";
    }
  }
}

TEST(GateTwin, FixedSharesTogetherAreHeldWithinAPoint) {
  for (const Nanoseconds kernel : {50 * kUs, 500 * kUs, 5 * kMs, 50 * kMs}) {
    const GateTwin low =
        ran(with(gate::Policy::kFixed), {saturating(5, kernel), saturating(15, kernel)});
    EXPECT_NEAR(low.share(0), 5, 1.0) << kernel;
    EXPECT_NEAR(low.share(1), 15, 1.0) << kernel;
    const GateTwin full =
        ran(with(gate::Policy::kFixed), {saturating(30, kernel), saturating(70, kernel)});
    EXPECT_NEAR(full.share(0), 30, 1.0) << kernel;
    EXPECT_NEAR(full.share(1), 70, 1.0) << kernel;
  }
}

TEST(GateTwin, IdleUnitsOfPolicy0StayIdle) {
  const GateTwin twin =
      ran(with(gate::Policy::kFair), {saturating(0, 500 * kUs), saturating(0, 50 * kUs)});
  EXPECT_NEAR(twin.share(0), 5, 1.0);
  EXPECT_NEAR(twin.share(1), 5, 1.0);
}

TEST(GateTwin, WeightsOneOneTwoGiveAQuarterAQuarterAHalf) {
  for (const gate::Policy policy : {gate::Policy::kWeighted, gate::Policy::kSoft}) {
    std::vector<TwinTenant> tenants(3, saturating(0, 500 * kUs));
    tenants[2].terms.weight = 2;
    const GateTwin twin = ran(with(policy), tenants);
    EXPECT_NEAR(twin.share(0), 25, 1.0);
    EXPECT_NEAR(twin.share(1), 25, 1.0);
    EXPECT_NEAR(twin.share(2), 50, 1.0);
  }
}

TEST(GateTwin, ThreeBusyTenantsOfPolicy1HaveAThirdEach) {
  const GateTwin twin =
      ran(with(gate::Policy::kPreemptive), std::vector<TwinTenant>(3, saturating(0, 500 * kUs)));
  for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(twin.share(i), 100.0 / 3, 1.0);
}

TEST(GateTwin, SoftLendsTheIdleShareAndGivesItBackWithin100Milliseconds) {
  std::vector<TwinTenant> tenants(3, saturating(0, 500 * kUs));
  tenants[2].terms.weight = 2;
  tenants[2].arrives = 5 * kSecond;
  const GateTwin twin = ran(with(gate::Policy::kSoft), tenants);
  EXPECT_NEAR(twin.share(0, 1 * kSecond, 5 * kSecond), 50, 1.0);
  EXPECT_NEAR(twin.share(2, 5 * kSecond + 100 * kMs, 5 * kSecond + 600 * kMs), 50, 3.0);
}

TEST(GateTwin, PrioRatioSplitsBetweenOnlineAndOthers) {
  TwinOptions options = with(gate::Policy::kSoft);
  options.terms.prio_ratio = 80;
  std::vector<TwinTenant> tenants(3, saturating(0, 500 * kUs));
  tenants[0].terms.share_class = gate::ShareClass::kOnline;
  const GateTwin together = ran(options, tenants);
  EXPECT_NEAR(together.share(0), 80, 1.0);
  EXPECT_NEAR(together.share(1), 10, 1.0);
  EXPECT_NEAR(together.share(2), 10, 1.0);
  tenants[0].arrives = 20 * kSecond;  // never in this run: the others have all
  const GateTwin without = ran(options, tenants);
  EXPECT_NEAR(without.share(1), 50, 1.0);
  EXPECT_NEAR(without.share(2), 50, 1.0);
}

TEST(GateTwin, EachPrioRatioSplitsRToOneMinusR) {
  for (const std::uint32_t ratio : {20u, 50u, 95u, 99u}) {
    TwinOptions options = with(gate::Policy::kSoft);
    options.terms.prio_ratio = ratio;
    std::vector<TwinTenant> tenants(2, saturating(0, 500 * kUs));
    tenants[0].terms.share_class = gate::ShareClass::kOnline;
    const GateTwin twin = ran(options, tenants);
    EXPECT_NEAR(twin.share(0), ratio, 1.0);
    EXPECT_NEAR(twin.share(1), 100.0 - ratio, 1.0);
  }
}

TEST(GateTwin, PrioRatioHoldsUnderPolicy1AsInTheWorkedExample) {
  TwinOptions options = with(gate::Policy::kPreemptive);
  options.terms.prio_ratio = 80;
  std::vector<TwinTenant> tenants(3, saturating(0, 500 * kUs));
  tenants[0].terms.share_class = gate::ShareClass::kOnline;
  const GateTwin twin = ran(options, tenants);
  EXPECT_NEAR(twin.share(0), 80, 1.0);
  EXPECT_NEAR(twin.share(1), 10, 1.0);
  EXPECT_NEAR(twin.share(2), 10, 1.0);
}

// But for the few milliseconds that a tenant keeps in flight, so that another policy may begin.
TEST(GateTwin, ANativeGpuIsAsWithoutTheGate) {
  const std::vector<TwinTenant> tenants = {saturating(0, 500 * kUs), saturating(0, 50 * kUs)};
  const GateTwin native = ran(with(gate::Policy::kNative), tenants);
  TwinOptions options;
  options.gated = false;
  const GateTwin bare = ran(options, tenants);
  for (const std::size_t i : {0u, 1u}) EXPECT_NEAR(native.share(i), bare.share(i), 4.0);
  EXPECT_GE(native.busy_percent(), bare.busy_percent() - 0.1);
}

// Against the hardware's own slices: a little less together, but each its share.
TEST(GateTwin, SynchronousTenantsAreServedBesideASaturatingOne) {
  TwinOptions bare;
  bare.gated = false;
  struct Row {
    Nanoseconds kernel;
    double least_of_hardware;  // of what the bare hardware does with two of them
  };
  for (const Row row :
       {Row{5 * kUs, 0.85}, Row{50 * kUs, 0.93}, Row{500 * kUs, 0.98}, Row{5 * kMs, 1.0}}) {
    const std::vector<TwinTenant> two(2, saturating(50, row.kernel, 1));
    EXPECT_GE(ran(TwinOptions{}, two).busy_percent(),
              row.least_of_hardware * ran(bare, two).busy_percent())
        << row.kernel;
  }
  const std::vector<TwinTenant> mixed = {saturating(50, 50 * kUs, 1), saturating(50, 500 * kUs)};
  EXPECT_LT(ran(bare, mixed).share(0), 3);  // the hardware starves it
  EXPECT_GT(ran(TwinOptions{}, mixed).share(0), 37);
}

TEST(GateTwin, ACappedLeaseLeavesTheRestToOthers) {
  std::vector<TwinTenant> tenants = {saturating(20, 500 * kUs), saturating(30, 500 * kUs)};
  tenants[0].terms.capped = true;
  const GateTwin twin = ran(with(gate::Policy::kBurst), tenants);
  EXPECT_NEAR(twin.share(0), 20, 1.0);
  EXPECT_GE(twin.busy_percent(), 98.0);
}

TEST(GateTwin, ABurstBesideASaturatingTenantIsServedSoon) {
  // 20 kernels of 250 us, 50/50: 5 ms alone; at a half it may take twice that and a window.
  TwinOptions options;
  options.duration = 21 * kSecond;
  const GateTwin twin = ran(options, {requests(50, 20, 20, 250 * kUs), saturating(50, 500 * kUs)});
  EXPECT_LE(percentile(twin.latencies(0), 0.5), 14 * kMs);
  EXPECT_GE(twin.busy_percent(), 98.0);
}

TEST(GateTwin, TrainingWithGapsLeavesTheGapsToOthers) {
  for (const Nanoseconds gap : {1 * kMs, 5 * kMs, 20 * kMs}) {
    TwinTenant training = saturating(50, 250 * kUs);
    training.behaviour = Behaviour::kTraining;
    training.burst_kernels = 40;
    training.gap = gap;
    const GateTwin twin = ran(TwinOptions{}, {training, saturating(50, 500 * kUs)});
    EXPECT_GE(twin.busy_percent(), 98.0) << gap;
  }
}

TEST(GateTwin, AnyNumberOfMultiprocessorsIsSharedAlike) {
  for (const unsigned multiprocessors : {16u, 46u, 108u, 192u}) {
    TwinOptions options;
    options.gpu.multiprocessors = multiprocessors;
    options.duration = 6 * kSecond;
    TwinTenant narrow = saturating(70, 500 * kUs);
    narrow.width_eighths = 4;
    narrow.threads = 2;
    const GateTwin twin = ran(options, {saturating(30, 500 * kUs), narrow});
    EXPECT_NEAR(twin.share(0), 30, 1.0) << multiprocessors;
    EXPECT_NEAR(twin.share(1), 70, 1.0) << multiprocessors;
    EXPECT_GE(twin.busy_percent(), 98.5) << multiprocessors;
  }
}

// A graph cannot be stopped between its nodes: it is one kernel as long as all of them.
TEST(GateTwin, AGraphOfTenThousandKernelsIsOneLongKernel) {
  TwinTenant graphs = saturating(30, 5 * kUs, 8);
  graphs.graph_nodes = 10'000;  // 50 ms a launch
  const GateTwin twin = ran(TwinOptions{}, {graphs, saturating(70, 500 * kUs)});
  EXPECT_NEAR(twin.share(0), 30, 1.0);
  EXPECT_NEAR(twin.share(1), 70, 1.0);
  EXPECT_LE(twin.longest_wait(1), 2 * 50 * kMs + 10 * kMs);
}

TEST(GateTwin, GraphsAreSharedAsTheirKernelsAre) {
  TwinTenant graphs = saturating(30, 50 * kUs, 8);
  graphs.graph_nodes = 40;  // 2 ms a launch
  const GateTwin twin = ran(TwinOptions{}, {graphs, saturating(70, 500 * kUs)});
  EXPECT_NEAR(twin.share(0), 30, 2.0);
  EXPECT_NEAR(twin.share(1), 70, 2.0);
}

struct OnlineCase {
  Nanoseconds offline_kernel;
  Nanoseconds release;
};

TEST(GateTwin, AnOnlineBurstWaitsForOneOfflineKernelOrTwoSlices) {
  for (const double rate : {5.0, 40.0}) {
    for (const OnlineCase c : {OnlineCase{50 * kUs, 100 * kMs}, OnlineCase{500 * kUs, 100 * kMs},
                               OnlineCase{5 * kMs, 100 * kMs}, OnlineCase{50 * kMs, 100 * kMs},
                               OnlineCase{50 * kUs, 2 * kMs}, OnlineCase{5 * kMs, 2 * kMs}}) {
      TwinTenant online = requests(0, rate, 20, 100 * kUs);
      online.terms.share_class = gate::ShareClass::kOnline;
      TwinOptions options;
      options.duration = 61 * kSecond;
      options.terms.release = c.release;
      // Alone too the 99th percentile is the host's wakes: of three seeds together.
      std::vector<Nanoseconds> alone, beside;
      for (options.seed = 1; options.seed <= 3; ++options.seed) {
        const GateTwin by_itself = ran(options, {online});
        const GateTwin twin = ran(options, {online, saturating(50, c.offline_kernel)});
        alone.insert(alone.end(), by_itself.latencies(0).begin(), by_itself.latencies(0).end());
        beside.insert(beside.end(), twin.latencies(0).begin(), twin.latencies(0).end());
      }
      const Nanoseconds over = percentile(beside, 0.99) - percentile(alone, 0.99);
      const Nanoseconds slices = 2 * (2 * kMs + 100 * kUs);
      EXPECT_LE(over, std::min(c.offline_kernel, slices) + 1 * kMs)
          << rate << "/s beside " << c.offline_kernel << " ns, release " << c.release;
    }
  }
}

TEST(GateTwin, AutomaticReleaseLeavesOfflineNineTenthsOfTheRest) {
  for (const Nanoseconds kernel : {50 * kUs, 500 * kUs}) {
    TwinTenant online = requests(0, 5, 20, 100 * kUs);
    online.terms.share_class = gate::ShareClass::kOnline;
    TwinOptions options;
    options.duration = 21 * kSecond;
    options.terms.release_auto = true;
    const GateTwin twin = ran(options, {online, saturating(50, kernel)});
    EXPECT_GE(twin.share(1), 0.9 * (100 - twin.share(0)));
  }
}

// A duration that counts the other process's slice makes the limiter hold back, the queue run dry,
// and the device switch at every run of a few kernels: 7 % of it where 2 % are needed.
TEST(GateTwin, TwoProcessesOfATenantDoNotTakeTheOthersSlicesForTheirKernels) {
  std::vector<TwinTenant> tenants(2, saturating(50, 5 * kUs, 32));
  for (TwinTenant& tenant : tenants) tenant.processes = 2;
  TwinOptions options;
  options.duration = 3 * kSecond;
  const GateTwin twin = ran(options, tenants);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_NEAR(twin.share(i), 50, 1);
    EXPECT_LE(twin.own_switches(i), options.duration * 3 / 100);
  }
}

}  // namespace
}  // namespace aliquot::replay
