// Arbiter: the broker's side of the compute gate on one GPU: who may launch, until when, and what
// each tenant is charged. A pure state machine: step(time, reports) changes windows and says when
// it must be called again.
//
// It leaves to its caller: clocks, shared memory, futexes, the driver, and when to step: on each
// wake of a tenant (first launch after a window opened, gate reached, drained, silent, attached or
// gone), and not later than the time that step() returned. Missing a wake costs time, never
// progress. One thread at a time.
//
// How it decides. Virtual time: each tenant's `ve` grows by what it is charged over its share; V is
// the average over active tenants, weighted by share. Who waits and is not ahead (ve <= V) with the
// earliest deadline ve + q/share is next (EEVDF). Windows do not wait for the device to drain:
// when the holder's work in flight will end in as much time as the successor needs to get going,
// the holder is closed and the successor opened. Where the end cannot be foretold the holder drains
// first. Alternatives and figures: docs/adr on the compute gate.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gate/terms.h"
#include "gate/window.h"

namespace aliquot::gate {

// Times of the algorithm, and nothing else: slow motion scales them all. They suit a host whose
// wakes take up to 100 us.
struct ArbiterOptions {
  Nanoseconds least_quantum = 5 * kMillisecond;
  Nanoseconds most_quantum = 10 * kMillisecond;
  Nanoseconds quantum_round = 80 * kMillisecond;  // shared by the active tenants
  Nanoseconds two_kernel_quantum = 11 * kMillisecond;
  Nanoseconds silence = 150 * kMicrosecond;
  Nanoseconds uncertain = 300 * kMicrosecond;  // deviation above which the holder drains first
  Nanoseconds least_lead = 30 * kMicrosecond;
  Nanoseconds grace = 100 * kMicrosecond;  // the successor is late by more: the holder fills in
  Nanoseconds filler = 1 * kMillisecond;
  Nanoseconds stays_active = 5 * kMillisecond;  // after its last work
  Nanoseconds unused_grant = 5 * kMillisecond;  // revoked then
  Nanoseconds first_ban = 2 * kMillisecond;     // doubles with each unused grant in a row
  Nanoseconds longest_ban = 1 * kSecond;
  Nanoseconds keeps_lag = 100 * kMillisecond;  // who comes back sooner gets all it was owed
  Nanoseconds most_credit = 10 * kMillisecond;
  Nanoseconds most_debt = 1 * kSecond;     // times the share
  Nanoseconds longest_wait = 1 * kSecond;  // or two of the longest kernels by the share
  Nanoseconds backstop = 100 * kMillisecond;
  Nanoseconds cut_to = 2 * kMillisecond;  // a window that a newcomer with a claim cuts short
  Nanoseconds end_when_joined = 200 * kMicrosecond;  // of a window that had no end
  Nanoseconds timer_slack = 10 * kMicrosecond;       // a wake so much early is in time
  Nanoseconds foreign_slices = 3 * kMillisecond;     // that others get before tails end, in a row
  Nanoseconds drain_poll = 500 * kMicrosecond;
  Nanoseconds least_poll = 20 * kMicrosecond;
  Nanoseconds look_again = 50 * kMicrosecond;  // at a holder that may be done sooner than it told
  Nanoseconds drain_patience = 10 * kMillisecond;  // and twice the longest kernel
  Nanoseconds least_release = 2 * kMillisecond;    // automatic release
  Nanoseconds most_release = 100 * kMillisecond;
  Nanoseconds check_every = 10 * kMillisecond;  // of a holder's reports against the clock
  Nanoseconds check_slack = 100 * kMicrosecond;
  // What an untrusted report may say at most. Longer kernels exist, but say so only by running: a
  // claim must not buy a longer window.
  Nanoseconds most_kernel = 100 * kMillisecond;
  Nanoseconds most_in_flight = 1'200 * kMicrosecond;  // and one kernel
  Nanoseconds most_lead = 5 * kMillisecond;
  Nanoseconds most_start_ahead = 2 * kMillisecond;
  Nanoseconds most_head = 1 * kSecond;
};

// For a machine slowed by `factor` (10: a tenth of the speed).
ArbiterOptions slowed(const ArbiterOptions& options, double factor);

// What is believed of an untrusted report, and safe to calculate with.
TenantReport bounded(TenantReport report, Nanoseconds now, const ArbiterOptions& options);

struct Account {
  Nanoseconds charged_ns = 0;
  Nanoseconds allowed_ns = 0;  // windows open, and work left in flight when they closed (audit.h)
  Nanoseconds forgiven_ns = 0;
  std::uint64_t windows = 0;
  std::uint64_t fillers = 0;
  std::uint64_t unused_grants = 0;
  std::uint64_t undrained_turns = 0;
  std::uint64_t false_reports = 0;  // windows in which it reported less than passed
};

enum class Standing : std::uint8_t { kIdle, kWaiting, kHolding, kBanned, kPausedByOnline, kCapped };

class Arbiter {
 public:
  explicit Arbiter(const GpuTerms& terms = {}, const ArbiterOptions& options = {});

  // Slots are used again after remove(). Reports of step() are by slot.
  std::size_t add(Nanoseconds now, const TenantTerms& terms);
  void remove(Nanoseconds now, std::size_t tenant);
  // In effect at once; what was owed or due stays owed or due.
  void set_terms(Nanoseconds now, std::size_t tenant, const TenantTerms& terms);
  void set_gpu_terms(Nanoseconds now, const GpuTerms& terms);
  // Whether a process of the tenant has the GPU open (policies 1 and 2 count only those).
  void set_holds_gpu(std::size_t tenant, bool holds);
  // No forgiveness of debt from now on.
  void mark_offender(std::size_t tenant, bool offender);
  // Use that did not come through the gate, found elsewhere (NVML).
  void charge(std::size_t tenant, Nanoseconds used);
  void ban(Nanoseconds now, std::size_t tenant, Nanoseconds time);

  // `reports` has an entry for each slot. The result: step again at this time at the latest.
  Nanoseconds step(Nanoseconds now, std::span<const TenantReport> reports);
  // Slots whose window the last step changed: publish these and wake their waiters.
  std::span<const std::size_t> changed() const { return changed_; }
  const Window& window(std::size_t tenant) const { return tenants_[tenant].window; }

  std::size_t slots() const { return tenants_.size(); }
  bool present(std::size_t tenant) const { return tenants_[tenant].present; }
  Share share(std::size_t tenant) const { return tenants_[tenant].share; }
  Standing standing(Nanoseconds now, std::size_t tenant) const;
  // In the past: it is not banned.
  Nanoseconds banned_until(std::size_t tenant) const { return tenants_[tenant].banned_until; }
  const Account& account(std::size_t tenant) const { return tenants_[tenant].account; }
  // Positive: device time it is owed; negative: it had more than its share.
  Nanoseconds lag(std::size_t tenant) const;
  // Lately, as it tells. Of an offline tenant: it bounds what an online one waits for.
  Nanoseconds longest_kernel(std::size_t tenant) const {
    return tenants_[tenant].report.longest_ns;
  }

 private:
  static constexpr int kNobody = -1;
  // What a window that opens or goes on admits at once, whatever its end: one kernel, or none.
  enum class Kernels : std::uint8_t { kOne, kNone, kUnlimited };

  struct Tenant {
    bool present = false;
    bool holds_gpu = true;
    bool active = false;
    bool offender = false;
    TenantTerms terms;
    Share share;
    TenantReport report;
    Window window;
    Nanoseconds last_activity = 0;
    double ve = 0;   // device ns a percent of share
    double lag = 0;  // device ns owed, kept while inactive
    Nanoseconds inactive_since = 0;
    double cap_credit = 0;  // capped: device ns it may use now
    Nanoseconds seen_busy = 0;
    double tail = 0;     // of a closed window: device ns that it can still have to run
    double foreign = 0;  // of what it claims beyond that, so much may be others'
    Nanoseconds granted_at = 0;
    Nanoseconds closed_at = 0;
    Nanoseconds waits_since = 0;  // at the gate, without a turn
    Nanoseconds banned_until = 0;
    bool overdue = false;         // what it says is in flight should have ended long ago
    std::uint32_t unused = 0;     // grants in a row without a launch
    std::uint32_t undrained = 0;  // turns in a row after which its report did not come to its end
    double owed = 0;              // of debt, that is not forgiven: device ns of such turns
    Account account;
  };
  // The holder's reports against the clock.
  struct Check {
    int tenant = kNobody;
    Nanoseconds start = 0;
    double wall = 0;
    double reported = 0;
  };

  // Accounts (arbiter_accounts.cc).
  void settle(Nanoseconds now);
  void read_use(Nanoseconds now, double wall);
  static void note_tail(Nanoseconds now, Tenant& tenant, Nanoseconds launched_before);
  void bound_tails(double wall, double& excess);
  void check_holder(double wall);
  void forgive();
  double most_debt(const Tenant& tenant) const;
  void fill_credit(double wall);
  void allow(Nanoseconds now, Nanoseconds before);
  double virtual_time() const;
  void set_active(Nanoseconds now, std::size_t tenant, bool active);
  void update_shares();
  void set_share(Tenant& tenant, const Share& share);
  bool throttled(const Tenant& tenant, Nanoseconds ahead) const;
  Nanoseconds quantum(const Tenant& tenant) const;

  // Membership, step, online (arbiter.cc).
  bool banned(const Tenant& tenant, Nanoseconds now) const { return now < tenant.banned_until; }
  bool has_work(const Tenant& tenant) const;
  bool took_over(const Tenant& tenant) const;
  bool believed(const Tenant& tenant) const { return tenant.undrained == 0 && !tenant.overdue; }
  bool in_flight(const Tenant& tenant) const {
    return tenant.report.in_flight > 0 && believed(tenant);
  }
  void read_reports(Nanoseconds now, std::span<const TenantReport> reports);
  void open(Nanoseconds now, std::size_t tenant, Nanoseconds end, Kernels kernels);
  void close(Nanoseconds now, std::size_t tenant);
  void give_up_turn(Nanoseconds now, std::size_t tenant);
  void note_change(std::size_t tenant);
  void wake_by(Nanoseconds time) { wake_at_ = time < wake_at_ ? time : wake_at_; }
  void wake_for_waiting(Nanoseconds now);
  void update_active(Nanoseconds now);
  void cut_window(Nanoseconds now, const Tenant& newcomer);
  bool held_by_online(Nanoseconds now);
  bool grabs(const Tenant& tenant) const;
  enum class Whose { kAll, kOffline };
  Nanoseconds longest_kernel(Whose whose) const;  // of those present, lately
  Nanoseconds release_time() const;
  void open_all(Nanoseconds now);

  // Turns (arbiter_turns.cc).
  void take_turns(Nanoseconds now);
  bool taken_over(Nanoseconds now);
  bool dropped_silent(Nanoseconds now);
  bool chose(Nanoseconds now);
  Nanoseconds drain_left(Nanoseconds now, const Tenant& holder);
  static Nanoseconds untold(Nanoseconds now, const Tenant& holder);
  void look_at(Nanoseconds now, const Tenant& holder, Nanoseconds at);
  void note_end_of_turn(Nanoseconds now, Tenant& holder, bool drained);
  bool passed_on(Nanoseconds now);
  bool hand_over(Nanoseconds now, Nanoseconds rest);
  void drop_unused(Nanoseconds now, std::size_t tenant);
  bool wants(Nanoseconds now, std::size_t tenant) const;
  bool others_want(Nanoseconds now) const;
  bool alone(Nanoseconds now) const;
  Nanoseconds goes_first_after(const Tenant& tenant, Nanoseconds kernel) const;
  bool waited_out(Nanoseconds now, const Tenant& tenant, Nanoseconds kernel) const;
  int pick(Nanoseconds now, bool device_idle) const;
  int pick_after(Nanoseconds now, Nanoseconds rest);
  Nanoseconds longest_lead(Nanoseconds now) const;

  GpuTerms gpu_;
  ArbiterOptions options_;
  std::vector<Tenant> tenants_;
  std::vector<std::size_t> changed_;
  std::vector<double> used_;  // by slot, while settling
  int holder_ = kNobody;
  int successor_ = kNobody;
  Nanoseconds window_start_ = 0;  // of the holder's window
  Nanoseconds handover_at_ = 0;   // when the holder's work should end
  // Which window has been over, and by when its work must be done.
  std::pair<int, std::uint32_t> drained_window_{kNobody, 0};
  Nanoseconds drained_by_ = 0;
  Nanoseconds settled_at_ = 0;
  Nanoseconds last_online_ = 0;
  bool online_present_ = false;  // of those that grab
  Nanoseconds wake_at_ = 0;
  double last_virtual_time_ = 0;
  Check check_;
};

}  // namespace aliquot::gate
