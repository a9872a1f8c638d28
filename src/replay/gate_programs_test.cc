// Random machines: nobody waits for ever, whatever runs beside it and whatever message is lost;
// and the invariants I1 to I10 that the gate's design promises. Simulated.
#include "replay/gate_programs_fixture.h"

namespace aliquot::replay {
namespace {

constexpr Nanoseconds kUs = kMicrosecond;
constexpr Nanoseconds kMs = kMillisecond;

TEST(GatePrograms, ThreeHundredRandomMachinesNeverStop) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    run_random_machine(seed);
    if (HasFailure()) break;
  }
}

TwinTenant saturating(double cores, Nanoseconds kernel, int depth = 64) {
  TwinTenant tenant;
  tenant.terms.cores_percent = cores;
  tenant.mix = {.classes = {{kernel, 1.0}}};
  tenant.depth = depth;
  return tenant;
}

// A turn costs a share of one percent a hundred times its length; before it is the first among
// those that are due, as much again may pass.
TEST(GateInvariants, ASmallShareHasATurnEachSecond) {
  for (const double share : {1.0, 2.0, 4.0}) {
    GateTwin twin(TwinOptions{}, {saturating(share, 200 * kUs), saturating(99 - share, 200 * kUs),
                                  saturating(1, 20 * kMs)});
    twin.run();
    EXPECT_LE(twin.longest_wait(0), kSecond) << share;
    EXPECT_NEAR(twin.share(0), share, 0.3);
  }
  for (const std::uint64_t seed : {8'323, 9'639}) run_random_machine(seed);
}

// I4: a grant without a launch is taken back within 5 ms, and others go on.
TEST(GateInvariants, AnUnusedGrantIsTakenBackWithinFiveMilliseconds) {
  TwinTenant phantom = saturating(50, 500 * kUs);
  phantom.cheat = Cheat::kPhantomDemand;
  GateTwin twin(TwinOptions{}, {phantom, saturating(50, 500 * kUs)});
  struct Seen {
    Nanoseconds opened = -1;
    Nanoseconds longest = 0;
  } seen;
  twin.observe(
      [](void* context, const GateTwin& t, Nanoseconds now) {
        auto& s = *static_cast<Seen*>(context);
        const bool open = t.arbiter().window(0).open;
        if (open && s.opened < 0) s.opened = now;
        if (!open && s.opened >= 0) {
          s.longest = std::max(s.longest, now - s.opened);
          s.opened = -1;
        }
      },
      &seen);
  twin.run();
  EXPECT_GT(seen.longest, 4 * kMs);
  EXPECT_LE(seen.longest, 7 * kMs);  // and a late timer
}

// I6: nobody is charged time that did not pass; what was charged is what was used, but for noise.
TEST(GateInvariants, ChargesAddUpToTheWallClock) {
  for (const Nanoseconds kernel : {50 * kUs, 500 * kUs, 5 * kMs, 50 * kMs}) {
    GateTwin twin(TwinOptions{},
                  {saturating(20, kernel), saturating(30, kernel), saturating(50, kernel)});
    twin.run();
    double charged = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      charged += static_cast<double>(twin.account(i).charged_ns);
      const double busy = twin.samples(i).back() * 1e6;
      EXPECT_NEAR(static_cast<double>(twin.account(i).charged_ns), busy, 0.01 * 11e9) << kernel;
    }
    EXPECT_LE(charged, 1.002 * 11e9) << kernel;
  }
}

// I6, fixed: no interval brings more than the share of it, a window and a kernel.
TEST(GateInvariants, AFixedShareIsNeverPassedByMoreThanAWindowAndAKernel) {
  TwinOptions options;
  options.terms.policy = gate::Policy::kFixed;
  for (const Nanoseconds kernel : {50 * kUs, 5 * kMs, 50 * kMs}) {
    GateTwin twin(options, {saturating(20, kernel), saturating(30, kernel)});
    twin.run();
    const double k = static_cast<double>(kernel) / 1e6;
    const double bound = std::max(11.0, k) + k + 1;
    for (const std::size_t tenant : {0u, 1u}) {
      const double share = tenant == 0 ? 0.2 : 0.3;
      double least = 1e18;
      double worst = 0;
      for (std::size_t i = 100; i < twin.samples(tenant).size(); ++i) {
        const double ahead = twin.samples(tenant)[i] - share * 10.0 * static_cast<double>(i);
        least = std::min(least, ahead);
        worst = std::max(worst, ahead - least);
      }
      EXPECT_LE(worst, bound) << kernel << " tenant " << tenant;
    }
  }
}

// I7: silence, the drain's detection and two host wakes; then somebody else works.
TEST(GateInvariants, TheDeviceIsNotIdleForLongWhileSomebodyWaits) {
  TwinOptions options;
  options.host.tail_probability = 0;
  options.host.wake_sigma = 0;
  for (const Nanoseconds kernel : {50 * kUs, 500 * kUs, 5 * kMs}) {
    TwinTenant training = saturating(40, 250 * kUs);
    training.behaviour = Behaviour::kTraining;
    training.gap = 3 * kMs;
    GateTwin twin(options, {saturating(20, kernel), saturating(40, kernel, 1), training});
    twin.run();
    EXPECT_LE(twin.longest_idle_demand(), 350 * kUs) << kernel;
    EXPECT_GT(twin.longest_idle_demand(), 0) << kernel;
  }
}

// I8: what a closed tenant still has in flight is short: the limit and one kernel.
TEST(GateInvariants, LittleIsInFlightWhenAWindowCloses) {
  for (const Nanoseconds kernel : {50 * kUs, 500 * kUs, 5 * kMs}) {
    GateTwin twin(TwinOptions{}, {saturating(30, kernel), saturating(70, kernel)});
    struct Seen {
      Nanoseconds most = 0;
    } seen;
    twin.observe(
        [](void* context, const GateTwin& t, Nanoseconds now) {
          if (now < 100 * kMs) return;  // the first estimates
          for (std::size_t slot = 0; slot < 2; ++slot) {
            if (t.arbiter().window(slot).open) continue;
            auto& s = *static_cast<Seen*>(context);
            s.most = std::max(s.most, t.reports()[slot].outstanding_ns);
          }
        },
        &seen);
    twin.run();
    const Nanoseconds limit = gate::TenantOptions{}.in_flight_limit;
    EXPECT_GT(seen.most, 0);
    // The estimates that it is made of are 2 % noisy, and so is the limit's allowance for that.
    EXPECT_LE(seen.most, (limit + kernel) * 110 / 100) << kernel;
  }
}

// I2: who was idle for long comes back with 10 ms of credit at most.
TEST(GateInvariants, IdlenessIsNotSavedUp) {
  TwinTenant sleeper = saturating(50, 500 * kUs);
  sleeper.behaviour = Behaviour::kTraining;
  sleeper.burst_kernels = 400;  // 200 ms of work
  sleeper.gap = 500 * kMs;
  GateTwin twin(TwinOptions{}, {sleeper, saturating(50, 500 * kUs)});
  struct Seen {
    Nanoseconds most = 0;
  } seen;
  twin.observe(
      [](void* context, const GateTwin& t, Nanoseconds now) {
        auto& s = *static_cast<Seen*>(context);
        if (now > 1 * kSecond && t.reports()[0].waiting > 0) {
          s.most = std::max(s.most, t.arbiter().lag(0));
        }
      },
      &seen);
  twin.run();
  EXPECT_GT(seen.most, 0);
  EXPECT_LE(seen.most, 10 * kMs + 2 * 10 * kMs);  // and what two windows owe anybody
}

// I10: all times ten times as long, so are all results.
TEST(GateInvariants, SlowMotionChangesNoShare) {
  const std::vector<TwinTenant> tenants = {saturating(20, 500 * kUs), saturating(30, 50 * kUs),
                                           saturating(50, 5 * kMs)};
  TwinOptions options;
  options.duration = 6 * kSecond;
  std::vector<TwinTenant> slow;
  for (const TwinTenant& tenant : tenants) slow.push_back(slowed(tenant, 10));
  GateTwin plain(options, tenants);
  GateTwin tenth(slowed(options, 10), slow);
  plain.run();
  tenth.run();
  for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(plain.share(i), tenth.share(i), 0.2);
  EXPECT_NEAR(static_cast<double>(plain.broker_steps()), static_cast<double>(tenth.broker_steps()),
              0.03 * static_cast<double>(plain.broker_steps()));
}

}  // namespace
}  // namespace aliquot::replay
