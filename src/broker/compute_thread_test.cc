// The thread around a GPU's arbiter: it sleeps, wakes for whoever rings, and ends.
#include "broker/compute_thread.h"

#include <gtest/gtest.h>
#include <linux/futex.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "broker/compute_fixture.h"

namespace aliquot::broker {
namespace {

void ring(PlayedLease& lease) {
  lease.ring();
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&lease.ledger().gpu(0).demand), FUTEX_WAKE, 1,
          nullptr, nullptr, 0);
}

bool soon(const std::function<bool()>& test) {
  for (int i = 0; i < 5000; ++i) {
    if (test()) return true;
    usleep(1000);
  }
  return false;
}

bool is_open(const PlayedLease& lease) { return (lease.grant.window & 1) != 0; }

struct Gpu {
  ComputeThread thread{std::make_unique<ComputeGpu>(gate::GpuTerms{}, 1.0)};

  std::size_t add(PlayedLease& lease) {
    return thread.with([&](ComputeGpu& gpu, Nanoseconds now) {
      const std::size_t tenant = gpu.add(now, lease.grant, lease.ledger(), 0);
      gpu.take_slot(now, tenant, 0);
      return tenant;
    });
  }
};

TEST(ComputeThread, OpensTheGateOfWhoRings) {
  PlayedLease lease;
  Gpu gpu;
  gpu.add(lease);
  EXPECT_FALSE(is_open(lease));
  lease.say({.waiting = 1});
  ring(lease);
  EXPECT_TRUE(soon([&] { return is_open(lease); }));
}

TEST(ComputeThread, SeesDemandWhoseRingWasLost) {
  PlayedLease lease;
  Gpu gpu;
  gpu.add(lease);
  lease.say({.waiting = 1});
  EXPECT_TRUE(soon([&] { return is_open(lease); }));
}

TEST(ComputeThread, WhoNeverLaunchesLosesItsTurnByTheTimer) {
  PlayedLease a, b;
  Gpu gpu;
  gpu.add(a);
  gpu.add(b);
  a.say({.waiting = 1});
  ring(a);
  ASSERT_TRUE(soon([&] { return is_open(a); }));
  b.say({.waiting = 1});
  ring(b);
  EXPECT_TRUE(soon([&] { return is_open(b); }));
}

TEST(ComputeThread, ALeaseMayGoWhileItsWordIsWaitedFor) {
  Gpu gpu;
  for (int i = 0; i < 200; ++i) {
    PlayedLease lease;
    const std::size_t tenant = gpu.add(lease);
    ring(lease);
    gpu.thread.with([&](ComputeGpu& compute, Nanoseconds now) { compute.remove(now, tenant); });
  }
}

TEST(ComputeThread, IdleItSleeps) {
  PlayedLease lease;
  Gpu gpu;
  gpu.add(lease);
  usleep(50'000);
  // Times that a thread of this process went to sleep: what a wake costs is the host's affair.
  const auto sleeps = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_nvcsw;
  };
  const long before = sleeps();
  usleep(1'000'000);
  EXPECT_LT(sleeps() - before, 20);
}

TEST(ComputeThread, AFloodOfRingsDoesNotKeepItAwake) {
  PlayedLease flood, honest;
  Gpu gpu;
  gpu.add(flood);
  gpu.add(honest);
  std::atomic<bool> done{false};
  std::thread flooder([&] {
    while (!done) ring(flood);
  });
  honest.say({.waiting = 1});
  ring(honest);
  EXPECT_TRUE(soon([&] { return is_open(honest); }));
  done = true;
  flooder.join();
}

}  // namespace
}  // namespace aliquot::broker
