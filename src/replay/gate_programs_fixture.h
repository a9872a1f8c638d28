// Random machines for the gate's property tests: tenants of every kind under every policy, lost
// wakes, streams that wait for each other across tenants. Test support only.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "replay/gate_twin.h"

namespace aliquot::replay {

struct RandomMachine {
  TwinOptions options;
  std::vector<TwinTenant> tenants;
};

inline TwinTenant random_tenant(std::mt19937_64& random, const gate::GpuTerms& gpu) {
  const auto below = [&](std::uint64_t n) { return static_cast<int>(random() % n); };
  constexpr Nanoseconds kLengths[] = {50 * kMicrosecond, 200 * kMicrosecond, 1 * kMillisecond,
                                      5 * kMillisecond, 20 * kMillisecond};
  TwinTenant tenant;
  tenant.terms.weight = 1 + static_cast<std::uint32_t>(below(4));
  if (below(2) == 0) tenant.terms.cores_percent = 5 + below(30);
  if (below(6) == 0) tenant.terms.share_class = gate::ShareClass::kOnline;
  tenant.terms.capped = tenant.terms.cores_percent > 0 && below(6) == 0;
  tenant.terms.priority = static_cast<std::uint32_t>(below(2));
  tenant.processes = 1 + below(2);
  tenant.threads = 1 + below(3);
  tenant.width_eighths = below(2) == 0 ? 8 : 4;
  tenant.depth = 1 << below(8);
  tenant.graph_nodes = below(5) == 0 ? 10 : 1;
  const int classes = 1 + below(2);
  for (int i = 0; i < classes; ++i) {
    const int longest = tenant.graph_nodes > 1 ? 3 : 5;
    tenant.mix.classes.push_back(
        {kLengths[below(static_cast<std::uint64_t>(longest))], 1.0 / classes});
  }
  tenant.mix.sigma = below(3) == 0 ? 0.3 : 0;
  if (below(3) == 0) {
    tenant.behaviour = below(2) == 0 ? Behaviour::kRequests : Behaviour::kTraining;
    tenant.requests_per_second = 5 + below(100);
    tenant.burst_kernels = 1 + below(30);
    tenant.gap = below(20) * kMillisecond;
  }
  tenant.arrives = below(3) == 0 ? below(1000) * kMillisecond : 0;
  if (below(4) == 0) tenant.leaves = tenant.arrives + (1 + below(2000)) * kMillisecond;
  if (below(4) == 0) {
    tenant.resized_at = tenant.arrives + below(2000) * kMillisecond;
    tenant.resized = tenant.terms;
    tenant.resized.weight = 1 + static_cast<std::uint32_t>(below(gpu.max_inst));
    if (tenant.resized_at >= tenant.leaves) tenant.resized_at = engine::kNever;
  }
  tenant.wait_probability = below(3) == 0 ? 0.3 : 0;
  if (below(15) == 0) tenant.cheat = Cheat::kPhantomDemand;
  if (below(15) == 0) tenant.stops_at = below(2000) * kMillisecond;
  return tenant;
}

inline RandomMachine random_machine(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t n) { return static_cast<int>(random() % n); };
  constexpr gate::Policy kPolicies[] = {
      gate::Policy::kFair,  gate::Policy::kPreemptive, gate::Policy::kWeighted,
      gate::Policy::kFixed, gate::Policy::kSoft,       gate::Policy::kBurst,
      gate::Policy::kBurst, gate::Policy::kBestEffort, gate::Policy::kNative};
  RandomMachine machine;
  machine.options.terms.policy = kPolicies[below(std::size(kPolicies))];
  machine.options.terms.prio_ratio = below(2) == 0 ? 80 : 0;
  machine.options.terms.release = (1 + below(100)) * kMillisecond;
  machine.options.terms.release_auto = below(3) == 0;
  machine.options.duration = 2'500 * kMillisecond;
  machine.options.warmup = 0;
  machine.options.seed = seed;
  machine.options.lost_wakes = below(3) == 0 ? 0.3 : 0;
  const int tenants = 1 + below(6);
  for (int i = 0; i < tenants; ++i) {
    machine.tenants.push_back(random_tenant(random, machine.options.terms));
  }
  return machine;
}

struct Watch {
  std::uint64_t seed = 0;
  const std::vector<TwinTenant>* tenants = nullptr;
  // By tenant.
  std::vector<double> least_share;         // of what all present are promised together
  std::vector<Nanoseconds> in_debt_since;  // with more than it may owe; kNever: it is not
  Nanoseconds longest_seen = 0;            // of the kernels, as the gate measured them
};

// Its longest launch, rare ones apart.
inline Nanoseconds longest_kernel(const TwinTenant& tenant) {
  double longest = 0;
  for (const KernelMix::Class& kind : tenant.mix.classes) {
    longest = std::max(longest, static_cast<double>(kind.duration_ns * tenant.graph_nodes) *
                                    (1 + 3 * tenant.mix.sigma));
  }
  return static_cast<Nanoseconds>(longest);
}

inline bool honest(const TwinTenant& tenant) {
  return tenant.cheat == Cheat::kNone && tenant.stops_at == engine::kNever;
}

// What must hold after each step of the broker.
inline void check_step(void* context, const GateTwin& twin, Nanoseconds now) {
  Watch& watch = *static_cast<Watch*>(context);
  const std::uint64_t seed = watch.seed;
  const gate::Arbiter& arbiter = twin.arbiter();
  double sum = 0;
  for (std::size_t slot = 0; slot < arbiter.slots(); ++slot) {
    if (arbiter.present(slot)) sum += arbiter.share(slot).percent;
  }
  for (std::size_t i = 0; i < watch.least_share.size(); ++i) {
    if (!twin.present(i)) continue;
    const double share = arbiter.share(twin.slot(i)).percent / std::max(100.0, sum);
    watch.least_share[i] = std::min(watch.least_share[i], share);
    // I4: an honest tenant that waits owes no more than a second's worth of its share, and the turn
    // that it had last: a window, and a kernel that ran out of it. Who comes or goes moves
    // everybody else's debt; what is too much is let go at the step after.
    const TwinTenant& tenant = (*watch.tenants)[i];
    const double debt = static_cast<double>(-arbiter.lag(twin.slot(i))) / 1e6;
    const double turn = 15 + 2 * static_cast<double>(longest_kernel(tenant)) / 1e6;
    const bool over = honest(tenant) &&
                      arbiter.standing(now, twin.slot(i)) == gate::Standing::kWaiting &&
                      debt > 10 * arbiter.share(twin.slot(i)).percent + turn;
    Nanoseconds& since = watch.in_debt_since[i];
    since = over ? std::min(since, now) : engine::kNever;
    EXPECT_LE(now - since, 10 * kMillisecond)
        << "tenant " << i << " owes " << debt << " ms, seed " << seed << " at " << now;
  }
  int limited = 0;
  int alone = 0;
  bool waiting = false;
  for (std::size_t slot = 0; slot < arbiter.slots(); ++slot) {
    if (!arbiter.present(slot)) continue;
    const gate::Window& window = arbiter.window(slot);
    const gate::TenantReport& report = twin.reports()[slot];
    if (window.open) ++(window.limited ? limited : alone);
    watch.longest_seen = std::max(watch.longest_seen, arbiter.longest_kernel(slot));
    waiting = waiting || (report.waiting > 0 && !window.open);
  }
  // I3: a holder and a successor at most, beside online tenants and a native GPU's.
  EXPECT_LE(limited, 2) << "seed " << seed << " at " << now;
  // I5: somebody waits, so something will happen.
  if (waiting) {
    EXPECT_LE(twin.broker_wakes_at() - now, 110 * kMillisecond) << "seed " << seed << " at " << now;
  }
}

// Longest time that a tenant with this share may stand at the gate (I9), where kernels take as long
// as this.
inline Nanoseconds longest_allowed_wait(Nanoseconds kernel, double share) {
  return std::max(kSecond, static_cast<Nanoseconds>(2 * static_cast<double>(kernel) / share));
}

inline void run_random_machine(std::uint64_t seed) {
  const RandomMachine machine = random_machine(seed);
  GateTwin twin(machine.options, machine.tenants);
  Watch watch{seed, &machine.tenants, std::vector<double>(machine.tenants.size(), 1.0),
              std::vector<Nanoseconds>(machine.tenants.size(), engine::kNever)};
  twin.observe(check_step, &watch);
  twin.run();
  const bool grabbed = machine.options.terms.prio_ratio == 0 &&
                       std::ranges::any_of(machine.tenants, [](const TwinTenant& tenant) {
                         return tenant.terms.share_class == gate::ShareClass::kOnline;
                       });
  Nanoseconds kernel = watch.longest_seen;
  for (const TwinTenant& other : machine.tenants) kernel = std::max(kernel, longest_kernel(other));
  for (std::size_t i = 0; i < machine.tenants.size(); ++i) {
    const TwinTenant& tenant = machine.tenants[i];
    // What was stopped does not take what it is given.
    if (!twin.present(i) || !honest(tenant)) continue;
    if (grabbed && tenant.terms.share_class == gate::ShareClass::kOffline) continue;
    const Nanoseconds allowed = longest_allowed_wait(kernel, watch.least_share[i]);
    EXPECT_LE(std::max(twin.waiting_for(i), twin.longest_wait(i)), allowed)
        << "tenant " << i << " seed " << seed;
  }
}

}  // namespace aliquot::replay
