// TenantGate: a tenant's side of the compute gate on one GPU. It says whether a launch may go now,
// keeps account of what is in flight, and makes the report that the broker decides by.
//
// It leaves to its caller: clocks, waiting, events that tell when work began and ended, shared
// memory. A lease with several processes has one TenantGate each; what the others have in flight
// comes in by set_others(). Not thread safe by itself (the interposer serialises its slow path;
// the fast path reads one word: is_open_alone() and quick()). No allocation, no library at run
// time, so that it can live inside any process.
//
// Why it is as it is (figures: docs/adr on the compute gate): work already queued cannot be taken
// back, so beside a competitor only `in_flight_limit` of work is queued, and the next launch is
// timed to just before that work ends. A limit in kernels, or one that lets kernels longer than
// it run one at a time, costs 2 % of the device. Where durations scatter, up to twice the limit is
// queued: else the device runs dry whenever a short kernel was taken for a longer one.
#pragma once

#include "gate/estimates.h"
#include "gate/window.h"

namespace aliquot::gate {

struct TenantOptions {
  Nanoseconds in_flight_limit = 600 * kMicrosecond;   // beside a competitor
  Nanoseconds in_flight_online = 400 * kMicrosecond;  // offline, while an online lease exists
  Nanoseconds in_flight_alone = 5 * kMillisecond;     // bounds what a newcomer waits for
  Nanoseconds unknown_kernel = 5 * kMillisecond;      // estimate before the first measurement
  Nanoseconds mark_alone = 1 * kMillisecond;          // work between two looks at the clock
  Nanoseconds silence = 150 * kMicrosecond;           // idle so long: the broker is told
  Nanoseconds ask_again = 50 * kMillisecond;          // at the gate: the broker is woken anew
  Nanoseconds first_lead = 80 * kMicrosecond;         // assumed before the first window
  Nanoseconds lead_counts = 5 * kMillisecond;         // a longer one was no readiness to launch
  Nanoseconds overlap_after = 2 * kMillisecond;       // ended work between two looks at overlap
  Nanoseconds start_ahead = 2 * kMillisecond;         // an announced start is believed so far
  Nanoseconds measure_every = 1 * kMillisecond;       // between durations of known kernels
  Nanoseconds slice = 1 * kMillisecond;               // the hardware's are longer
  Nanoseconds tail_before = 200 * kMicrosecond;       // of the tenant before, after a take-over
};

// For a machine slowed by `factor` (10: a tenth of the speed).
TenantOptions slowed(const TenantOptions& options, double factor);

// What the other processes of a lease have told: one of them reckons with it.
struct OtherProcesses {
  std::uint32_t in_flight = 0;
  Nanoseconds work_left = 0;
  Nanoseconds last_launch = 0;

  void add(const TenantReport& report, Nanoseconds now) {
    in_flight += report.in_flight;
    work_left += report.work_left(now);
    if (report.last_launch > last_launch) last_launch = report.last_launch;
  }
};

class TenantGate {
 public:
  explicit TenantGate(const TenantOptions& options = {})
      : options_(options), lead_ns_(options.first_lead) {}

  enum class Answer : std::uint8_t {
    kGo,
    kGate,     // closed or too little time left: wait for the next window
    kLimiter,  // enough in flight: ask again after `wait_ns`, or when work completes
  };
  struct Verdict {
    Answer answer = Answer::kGo;
    Nanoseconds wait_ns = 0;
  };

  // Estimate of a kernel; one never measured counts as long (a burst of them must not queue up)
  // unless the caller has something better to assume. Any thread.
  Nanoseconds estimate(std::uint64_t key) const { return estimate(key, options_.unknown_kernel); }
  [[gnu::always_inline]] Nanoseconds estimate(std::uint64_t key, Nanoseconds unmeasured) const {
    const Nanoseconds known = estimates_.of(key).duration_ns;
    return known > 0 ? known : unmeasured;
  }
  bool knows(std::uint64_t key) const { return estimates_.of(key).duration_ns > 0; }

  // Whether events around the next launch would tell how long the kernel takes: now and then, and
  // not where the device may have others' work to do between them. A kernel that was never measured
  // always: something is better than nothing.
  bool wants_duration(Nanoseconds now, const Window& window, std::uint64_t key) const;
  // The launch is being measured.
  void measures(Nanoseconds now) { last_measured_ = now; }

  // Alone: may go without a look at the clock. False: use may_launch(), and let an event mark the
  // launch: completed() is then called once for it and all launches before it. Work that went
  // quickly counts as in flight until take_unmarked() hands it to the marked launch. Any thread:
  // several at the same moment may pass the mark by one kernel each.
  [[gnu::always_inline]] bool quick(Nanoseconds estimate_ns) {
    if (unmarked() + estimate_ns > options_.mark_alone) return false;
    __atomic_fetch_add(&unmarked_ns_, estimate_ns, __ATOMIC_RELAXED);
    return true;
  }
  Nanoseconds unmarked() const { return __atomic_load_n(&unmarked_ns_, __ATOMIC_RELAXED); }
  // Add this to the estimate of the marked launch.
  Nanoseconds take_unmarked() { return __atomic_exchange_n(&unmarked_ns_, 0, __ATOMIC_RELAXED); }

  // kGo is a promise: launched() or abandoned() with the same estimate follows.
  Verdict may_launch(Nanoseconds now, const Window& window, Nanoseconds estimate_ns);
  void abandoned(Nanoseconds estimate_ns) { promised_ns_ -= estimate_ns; }
  // The one kernel that this window admits, however long, is still to be had.
  bool has_free_kernel(const Window& window) const {
    return window.open && window.limited && used_number_ != window.number;
  }

  // Another process of the lease has taken the one kernel that this window admits in any case.
  void free_kernel_taken(std::uint32_t number) { used_number_ = number; }

  // The launch was handed to the driver. True: tell the broker (the lease's first since the window
  // opened, which is how it learns that the window was taken over; of an online tenant also the
  // first of a burst, which takes the GPU).
  bool launched(Nanoseconds now, const Window& window, std::uint64_t key, Nanoseconds estimate_ns);
  // The device has begun the first of the work in flight, as an event before it tells.
  void began(Nanoseconds at);
  // `count` launches whose estimates sum to `estimate_ns` are complete since `at`. The duration
  // that an event measured for them goes to measured().
  void completed(Nanoseconds at, std::uint32_t count, Nanoseconds estimate_ns);
  // A kernel took so long, apart from time in which another context had the device. Before
  // completed() of the same launch.
  void measured(std::uint64_t key, Nanoseconds duration_ns);

  // Threads at the closed gate, and threads inside a launch or the limiter.
  void wait_at_gate() { ++waiting_; }
  void leave_gate() { --waiting_; }
  void enter_launch() { ++inside_; }
  void leave_launch() { --inside_; }
  void set_others(const OtherProcesses& others) { others_ = others; }

  // Estimate of the work in flight that ends next, where the caller knows it; else 0, and the mean
  // of all counts. How much of what has passed is believed depends on it.
  void head_is(Nanoseconds estimate_ns) { head_ns_ = estimate_ns; }

  void set_online(bool online) { online_ = online; }
  const TenantOptions& options() const { return options_; }

  std::uint32_t in_flight() const { return in_flight_ + others_.in_flight; }
  Nanoseconds work_left(Nanoseconds now) const;
  // Nothing is in flight and the broker waits for that.
  bool drained(Nanoseconds now, const Window& window) const;
  // Nothing in flight, no thread on its way, for the time of silence.
  bool silent(Nanoseconds now) const;

  TenantReport report() const;
  // With what may go but is not launched yet counted as in flight: what the other processes of the
  // lease are to reckon with.
  TenantReport report_with_promises(Nanoseconds now) const;

 private:
  void note_overlap(Nanoseconds at, Nanoseconds estimate_ns);
  Nanoseconds limit(const Window& window) const;
  Verdict verdict(Nanoseconds now, const Window& window, Nanoseconds estimate_ns) const;

  TenantOptions options_;
  bool online_ = false;
  Estimates estimates_;
  std::uint32_t in_flight_ = 0;
  OtherProcesses others_;
  std::uint32_t waiting_ = 0;
  std::uint32_t inside_ = 0;
  Nanoseconds outstanding_ns_ = 0;
  Nanoseconds unmarked_ns_ = 0;
  Nanoseconds promised_ns_ = 0;  // may go, but is not yet launched
  Nanoseconds head_ns_ = 0;
  Nanoseconds since_ = 0;
  Nanoseconds last_launch_ = 0;
  Nanoseconds last_measured_ = 0;
  std::uint32_t used_number_ = 0;  // the window whose free kernel was taken
  Nanoseconds tail_deviation_ns_ = 0;
  Nanoseconds lead_ns_;
  Nanoseconds busy_ns_ = 0;
  Nanoseconds busy_since_ = 0;
  Nanoseconds busy_until_ = 0;
  // Streams overlap: time passes slower than durations add up.
  double overlap_ = 1.0;
  Nanoseconds ended_ns_ = 0;  // estimates of what has ended since overlap_ was last taken
  Nanoseconds busy_before_ns_ = 0;
};

}  // namespace aliquot::gate
