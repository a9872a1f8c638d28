#include "gate/tenant.h"

#include "gate/scaled.h"

namespace aliquot::gate {
namespace {

constexpr Nanoseconds kMuchLonger = 20;

template <typename T>
T smaller(T a, T b) {
  return a < b ? a : b;
}
template <typename T>
T larger(T a, T b) {
  return a > b ? a : b;
}

}  // namespace

TenantOptions slowed(const TenantOptions& options, double factor) {
  return scaled(options, factor);
}

TenantReport TenantGate::report() const {
  const Nanoseconds unmarked_ns = unmarked();
  const std::uint32_t in_flight = in_flight_ + (unmarked_ns > 0 ? 1 : 0);
  const auto outstanding =
      static_cast<Nanoseconds>(static_cast<double>(outstanding_ns_ + unmarked_ns) * overlap_);
  return {.busy_ns = busy_ns_,
          .busy_since = busy_since_,
          .busy_until = busy_until_,
          .last_launch = last_launch_,
          .since = since_,
          .in_flight = in_flight,
          .waiting = waiting_,
          .inside = inside_,
          .outstanding_ns = outstanding,
          .head_ns =
              in_flight == 0 ? 0 : larger(outstanding / in_flight, smaller(outstanding, head_ns_)),
          .tail_deviation_ns = tail_deviation_ns_,
          .longest_ns = estimates_.longest(),
          .lead_ns = lead_ns_};
}

TenantReport TenantGate::report_with_promises(Nanoseconds now) const {
  TenantReport with = report();
  if (promised_ns_ == 0) return with;
  if (with.in_flight++ == 0) {
    with.since = now;
    with.head_ns = promised_ns_;
  }
  with.outstanding_ns += promised_ns_;
  return with;
}

Nanoseconds TenantGate::work_left(Nanoseconds now) const {
  return report().work_left(now) + others_.work_left;
}

Nanoseconds TenantGate::limit(const Window& window) const {
  if (!window.limited) return options_.in_flight_alone;
  const Nanoseconds most =
      window.beside_online ? options_.in_flight_online : options_.in_flight_limit;
  // Where estimates deviate, what is in flight may be over much sooner than they say.
  return most + smaller(tail_deviation_ns_, most);
}

TenantGate::Verdict TenantGate::may_launch(Nanoseconds now, const Window& window,
                                           Nanoseconds estimate_ns) {
  const Verdict said = verdict(now, window, estimate_ns);
  if (said.answer == Answer::kGo) {
    // Threads that ask at the same moment must not all take the same room.
    promised_ns_ += estimate_ns;
    used_number_ = window.number;
  }
  return said;
}

TenantGate::Verdict TenantGate::verdict(Nanoseconds now, const Window& window,
                                        Nanoseconds estimate_ns) const {
  if (!window.open) return {Answer::kGate, 0};
  const bool anything = in_flight() > 0 || promised_ns_ > 0 || unmarked() > 0;
  const Nanoseconds left = work_left(now) + promised_ns_;
  const Nanoseconds most = limit(window);
  if (!window.limited) {
    if (!anything || left <= most) return {Answer::kGo, 0};
    return {Answer::kLimiter, left - most * 3 / 4};
  }
  // Each window admits one kernel, else one longer than the window would never run.
  if (used_number_ != window.number) return {Answer::kGo, 0};
  const Nanoseconds time = window.end - now;
  if (time <= 0 || time - left < estimate_ns / 2) return {Answer::kGate, 0};
  if (!anything || left <= most) return {Answer::kGo, 0};
  return {Answer::kLimiter, larger<Nanoseconds>(0, left - most / 2)};
}

bool TenantGate::launched(Nanoseconds now, const Window& window, std::uint64_t key,
                          Nanoseconds estimate_ns) {
  // Behind the launches of another process it waited for room: that is no lead.
  const bool first = window.open && larger(last_launch_, others_.last_launch) < window.opened_at;
  const bool burst = online_ && in_flight_ == 0 &&
                     (last_launch_ == 0 || now - larger(last_launch_, since_) >= options_.silence);
  if (in_flight_++ == 0) {
    // After a take-over the device is still busy with the work of the tenant before.
    since_ = larger(now, smaller(window.start, now + options_.start_ahead));
    outstanding_ns_ = 0;
  }
  outstanding_ns_ += estimate_ns;
  promised_ns_ = larger<Nanoseconds>(0, promised_ns_ - estimate_ns);
  tail_deviation_ns_ = estimates_.of(key).deviation_ns;
  last_launch_ = now;
  if (!first || !window.limited) return burst;
  const Nanoseconds lead = now - window.opened_at;
  if (lead < options_.lead_counts) lead_ns_ = (lead_ns_ * 4 + lead) / 5;
  return true;
}

void TenantGate::began(Nanoseconds at) {
  if (busy_since_ > 0) return;
  busy_since_ = larger<Nanoseconds>(at, 1);
  busy_until_ = 0;
}

void TenantGate::completed(Nanoseconds at, std::uint32_t count, Nanoseconds estimate_ns) {
  in_flight_ = in_flight_ > count ? in_flight_ - count : 0;
  outstanding_ns_ = larger<Nanoseconds>(0, outstanding_ns_ - estimate_ns);
  since_ = at;
  note_overlap(at, estimate_ns);
  if (in_flight_ > 0) return;
  outstanding_ns_ = 0;
  if (busy_since_ > 0) busy_ns_ += larger<Nanoseconds>(0, at - busy_since_);
  busy_since_ = 0;
  busy_until_ = at;
}

bool TenantGate::wants_duration(Nanoseconds now, const Window& window, std::uint64_t key) const {
  const Nanoseconds known = estimates_.of(key).duration_ns;
  if (known == 0) return true;
  if (now - last_measured_ < options_.measure_every) return false;
  // The device interrupts long kernels for another process of the lease.
  if (others_.in_flight > 0 && known > options_.slice) return false;
  if (in_flight_ > 0) return true;
  // The first event comes at once; what another context has begun, the device may do before. To a
  // kernel that fills its window by itself the tail of the tenant before adds little.
  const bool tail_counts = window.limited && now <= window.opened_at + options_.tail_before;
  return others_.in_flight == 0 && (!tail_counts || known > kMuchLonger * options_.tail_before);
}

void TenantGate::measured(std::uint64_t key, Nanoseconds duration_ns) {
  // completed() will count the estimate.
  ended_ns_ += duration_ns - estimate(key);
  estimates_.measured(key, duration_ns);
}

void TenantGate::note_overlap(Nanoseconds at, Nanoseconds estimate_ns) {
  ended_ns_ += estimate_ns;
  if (ended_ns_ < options_.overlap_after) return;
  const Nanoseconds busy =
      busy_ns_ + (busy_since_ > 0 ? larger<Nanoseconds>(0, at - busy_since_) : 0);
  const double ratio = static_cast<double>(busy - busy_before_ns_) / static_cast<double>(ended_ns_);
  overlap_ = 0.7 * overlap_ + 0.3 * smaller(1.0, larger(0.03, ratio));
  ended_ns_ = 0;
  busy_before_ns_ = busy;
}

bool TenantGate::drained(Nanoseconds now, const Window& window) const {
  return in_flight_ == 0 && unmarked() == 0 && (!window.open || waiting_ > 0 || now >= window.end);
}

bool TenantGate::silent(Nanoseconds now) const {
  return in_flight_ == 0 && unmarked() == 0 && waiting_ == 0 && inside_ == 0 &&
         now - larger(last_launch_, since_) >= options_.silence;
}

}  // namespace aliquot::gate
