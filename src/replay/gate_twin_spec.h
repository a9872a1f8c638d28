// What the compute gate's twin is made of: tenants and what they launch, the host's latencies.
// Values; no thread rules.
//
// Host model (a usual Linux host): a wake takes a log-normal time of median 60 us with a 0.2 % tail
// of mean 1 ms; timers half of that; a launch 4 us, plus 1.5 us for an event per 50 us of work
// beside a competitor; a synchronising thread wakes 8 us, a drain is seen 15 us late.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/work.h"
#include "gate/arbiter.h"
#include "gate/tenant.h"

namespace aliquot::replay {

// Kernel durations: one of several classes, each with its probability.
struct KernelMix {
  struct Class {
    Nanoseconds duration_ns = 0;
    double probability = 1.0;
  };
  std::vector<Class> classes;
  double sigma = 0;     // log-normal spread of each
  bool pareto = false;  // exponent 1.5 with the class's duration as mean, at most 50 ms
};

enum class Behaviour : std::uint8_t {
  kSaturating,  // keeps `depth` launches queued in each thread
  kRequests,    // Poisson arrivals of `burst_kernels` kernels each, waited for
  kTraining,    // `burst_kernels`, then `gap` on the CPU, and so on
};

enum class Cheat : std::uint8_t {
  kNone,
  kReportsLess,    // reports `report_factor` of its use
  kHidesQueue,     // ignores the limiter and says that nothing is in flight
  kIgnoresGate,    // launches whatever the window says
  kShortensTail,   // launches while its window is open, and tells of 50 us in flight at most
  kRandomReports,  // writes random words where its report belongs
  kPhantomDemand,  // claims to wait and never launches
  kNeverDrains,    // always claims a second's work in flight and threads at the gate
};

struct TwinTenant {
  gate::TenantTerms terms;
  int processes = 1;
  int threads = 1;        // a process; each with its own stream
  int width_eighths = 8;  // of the device, that one kernel takes
  Behaviour behaviour = Behaviour::kSaturating;
  int depth = 64;
  KernelMix mix;
  int graph_nodes = 1;  // a launch is a graph of so many kernels in a row
  double requests_per_second = 0;
  int burst_kernels = 10;
  Nanoseconds gap = 0;
  Nanoseconds arrives = 0;
  Nanoseconds leaves = engine::kNever;
  Nanoseconds resized_at = engine::kNever;
  gate::TenantTerms resized;
  Cheat cheat = Cheat::kNone;
  double report_factor = 1.0;
  double wait_probability = 0;  // before a launch: wait for some other stream, whosever it is
  Nanoseconds stops_at = engine::kNever;  // as by SIGSTOP: launches no more, its report stays
};

struct HostModel {
  Nanoseconds wake_median = 60 * kMicrosecond;
  double wake_sigma = 0.4;
  double tail_probability = 0.002;
  Nanoseconds tail_mean = 1 * kMillisecond;
  Nanoseconds launch = 4 * kMicrosecond;
  Nanoseconds event = 1'500;
  Nanoseconds sync_wake = 8 * kMicrosecond;
  Nanoseconds drain_seen = 15 * kMicrosecond;
  Nanoseconds event_per = 50 * kMicrosecond;  // of work
  Nanoseconds timer_call = 2 * kMicrosecond;
  Nanoseconds start_spread = 1 * kMillisecond;  // between threads that begin together
  double noise = 0.02;                          // of measured durations
};

struct TwinOptions {
  engine::EngineSpec gpu;
  gate::GpuTerms terms;
  gate::ArbiterOptions arbiter;
  gate::TenantOptions tenant;
  HostModel host;
  bool gated = true;     // false: the hardware's time slices alone
  bool audited = false;  // the driver's samples against what was allowed
  bool ends_offenders = false;
  double lost_wakes = 0;  // of the wakes of the broker, for the tests of lost messages
  Nanoseconds duration = 11 * kSecond;
  Nanoseconds warmup = 1 * kSecond;
  Nanoseconds sample_every = 10 * kMillisecond;
  std::uint64_t seed = 1;
};

// The same machine, host and gate with every time `factor` as long.
TwinOptions slowed(const TwinOptions& options, double factor);
TwinTenant slowed(const TwinTenant& tenant, double factor);

}  // namespace aliquot::replay
