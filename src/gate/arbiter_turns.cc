// Turns: taking over, falling silent, choosing, handing over.
#include <algorithm>
#include <limits>
#include <tuple>

#include "gate/arbiter.h"

namespace aliquot::gate {
namespace {

constexpr Nanoseconds kNever = std::numeric_limits<Nanoseconds>::max();

}  // namespace

void Arbiter::take_turns(Nanoseconds now) {
  // Each round passes the turn on at most once; more than a few in one moment means nothing new.
  for (int round = 0; round < 4; ++round) {
    if (successor_ != kNobody && !taken_over(now)) return;
    if (holder_ != kNobody && dropped_silent(now)) continue;
    if (holder_ == kNobody && !chose(now)) return;
    if (!passed_on(now)) return;
  }
  wake_by(now + options_.least_poll);
}

bool Arbiter::has_work(const Tenant& tenant) const {
  return tenant.report.waiting > 0 || in_flight(tenant);
}

bool Arbiter::took_over(const Tenant& tenant) const {
  return tenant.report.last_launch >= tenant.window.opened_at || in_flight(tenant);
}

bool Arbiter::wants(Nanoseconds now, std::size_t index) const {
  const Tenant& tenant = tenants_[index];
  if (!tenant.present || banned(tenant, now)) return false;
  if (tenant.report.waiting > 0) return true;
  if (static_cast<int>(index) != holder_ && !tenant.window.open) return false;
  return has_work(tenant) || now - tenant.last_activity < options_.silence;
}

bool Arbiter::others_want(Nanoseconds now) const {
  for (std::size_t i = 0; i < tenants_.size(); ++i) {
    if (tenants_[i].active && static_cast<int>(i) != holder_ && wants(now, i)) return true;
  }
  return false;
}

bool Arbiter::alone(Nanoseconds now) const {
  if (online_present_ || others_want(now)) return false;
  return holder_ == kNobody || !tenants_[static_cast<std::size_t>(holder_)].share.capped;
}

// However it was counted, nobody who may have a turn waits longer than a second, or than two of the
// longest kernels take from its share: before its turn a lost message, a window and one of those
// kernels may still pass.
Nanoseconds Arbiter::goes_first_after(const Tenant& tenant, Nanoseconds kernel) const {
  if (tenant.share.percent <= 0) return kNever;
  const auto longest = std::max(
      options_.longest_wait,
      static_cast<Nanoseconds>(200.0 * static_cast<double>(kernel) / tenant.share.percent));
  return longest - options_.backstop - 2 * options_.most_quantum - kernel;
}

bool Arbiter::waited_out(Nanoseconds now, const Tenant& tenant, Nanoseconds kernel) const {
  if (tenant.report.waiting == 0 || tenant.window.open) return false;
  return now - tenant.waits_since >= goes_first_after(tenant, kernel);
}

// Among those that want and may: who has waited as long as it may; else who is due (ve <= V), of
// the highest priority, with the earliest deadline. Nobody is due only by rounding: then who is
// furthest behind.
int Arbiter::pick(Nanoseconds now, bool device_idle) const {
  const double v = virtual_time() + 1e-6;
  const Nanoseconds kernel = longest_kernel(Whose::kAll);
  int best = kNobody;
  std::tuple<bool, bool, std::uint32_t> best_rank;
  double best_deadline = 0;
  for (std::size_t i = 0; i < tenants_.size(); ++i) {
    const Tenant& tenant = tenants_[i];
    if (!tenant.active || !wants(now, i)) continue;
    if (throttled(tenant, device_idle ? tenant.report.lead_ns : 0)) continue;
    const bool due = tenant.ve <= v;
    const std::tuple rank{waited_out(now, tenant, kernel), due, due ? tenant.terms.priority : 0u};
    const double deadline =
        due ? tenant.ve + static_cast<double>(quantum(tenant)) / tenant.share.percent : tenant.ve;
    if (best != kNobody && (rank < best_rank || (rank == best_rank && deadline >= best_deadline)))
      continue;
    best = static_cast<int>(i);
    best_rank = rank;
    best_deadline = deadline;
  }
  return best;
}

// Whose turn it is once the holder has been charged up to `rest`.
int Arbiter::pick_after(Nanoseconds now, Nanoseconds rest) {
  Tenant& holder = tenants_[static_cast<std::size_t>(holder_)];
  const auto ahead = static_cast<double>(std::max<Nanoseconds>(0, rest - now));
  const double ve = holder.ve;
  const double credit = holder.cap_credit;
  holder.ve += ahead / holder.share.percent;
  holder.cap_credit -= ahead * (1.0 - holder.share.percent / 100.0);
  const int next = pick(now, false);
  const bool must_stop = throttled(holder, 0);
  holder.ve = ve;
  holder.cap_credit = credit;
  // Nobody wants and the holder may: it keeps the turn.
  return next == kNobody && !must_stop ? holder_ : next;
}

Nanoseconds Arbiter::longest_lead(Nanoseconds now) const {
  Nanoseconds lead = options_.least_lead;
  for (std::size_t i = 0; i < tenants_.size(); ++i) {
    if (!tenants_[i].active || static_cast<int>(i) == holder_ || !wants(now, i)) continue;
    lead = std::max(lead, tenants_[i].report.lead_ns);
  }
  return lead;
}

// The successor has launched: it holds now. False: it has not, and the holder fills the gap.
bool Arbiter::taken_over(Nanoseconds now) {
  Tenant& next = tenants_[static_cast<std::size_t>(successor_)];
  if (took_over(next)) {
    next.unused = 0;
    if (holder_ != kNobody) close(now, static_cast<std::size_t>(holder_));
    holder_ = successor_;
    successor_ = kNobody;
    window_start_ = now;
    next.window.end = std::max(now, handover_at_) + quantum(next);
    note_change(static_cast<std::size_t>(holder_));
    return true;
  }
  if (now - next.window.opened_at >= options_.unused_grant) {
    drop_unused(now, static_cast<std::size_t>(successor_));
    successor_ = kNobody;
    return true;
  }
  wake_by(next.window.opened_at + options_.unused_grant);
  if (holder_ == kNobody || !has_work(tenants_[static_cast<std::size_t>(holder_)])) return false;
  if (now < handover_at_ + options_.grace) {
    wake_by(handover_at_ + options_.grace);
    return false;
  }
  Tenant& holder = tenants_[static_cast<std::size_t>(holder_)];
  if (!throttled(holder, 0) && (!holder.window.open || holder.window.end <= now)) {
    open(now, static_cast<std::size_t>(holder_), now + options_.filler, Kernels::kNone);
    ++holder.account.fillers;
  }
  wake_by(now + options_.filler - options_.grace);
  return false;
}

// A grant that brought no launch: others do not wait for such a tenant again for a while.
void Arbiter::drop_unused(Nanoseconds now, std::size_t index) {
  Tenant& tenant = tenants_[index];
  tenant.unused = std::min<std::uint32_t>(tenant.unused + 1, 16);
  ++tenant.account.unused_grants;
  tenant.banned_until =
      now + std::min(options_.longest_ban, options_.first_ban << (tenant.unused - 1));
  close(now, index);
  set_active(now, index, false);
}

// True: the holder has nothing to do and others wait, so its turn is over.
bool Arbiter::dropped_silent(Nanoseconds now) {
  Tenant& holder = tenants_[static_cast<std::size_t>(holder_)];
  const bool busy_inside = holder.report.inside > 0 && believed(holder);
  if (in_flight(holder)) return false;
  if (alone(now)) {
    if (holder.window.open) wake_by(now + options_.unused_grant);
    return false;
  }
  const bool unused = holder.report.last_launch < holder.granted_at;
  if (holder.window.open && unused && !busy_inside &&
      now - holder.granted_at >= options_.unused_grant) {
    drop_unused(now, static_cast<std::size_t>(holder_));
    holder_ = kNobody;
    return true;
  }
  if (holder.window.open) wake_by(now + options_.unused_grant);
  if (holder.report.waiting > 0 || busy_inside) return false;
  const bool launched = holder.report.last_launch >= holder.window.opened_at;
  const Nanoseconds patience = launched ? options_.silence : options_.unused_grant;
  const Nanoseconds quiet = now - std::max(holder.last_activity, holder.window.opened_at);
  if (quiet < patience) {
    wake_by(now + patience - quiet);
    return false;
  }
  if (launched) {
    close(now, static_cast<std::size_t>(holder_));
  } else {
    drop_unused(now, static_cast<std::size_t>(holder_));
  }
  holder_ = kNobody;
  return true;
}

// The device is free. False: nobody may have it now.
bool Arbiter::chose(Nanoseconds now) {
  const int next = pick(now, true);
  if (next == kNobody) return false;
  holder_ = next;
  Tenant& holder = tenants_[static_cast<std::size_t>(next)];
  handover_at_ = window_start_ = now;
  if (alone(now)) {
    open(now, static_cast<std::size_t>(next), kNever, Kernels::kUnlimited);
  } else {
    open(now, static_cast<std::size_t>(next), now + quantum(holder) + holder.report.lead_ns,
         Kernels::kOne);
    wake_by(now + options_.silence);
  }
  return true;
}

// How long a drain may still take. Once its window is over a holder's work only gets less, so what
// it told then is the bound, and one kernel that nobody could foretell; what others still have in
// flight may take as much from it. A report that never comes to its end does not keep the turn, and
// the next time is believed half as much.
Nanoseconds Arbiter::drain_left(Nanoseconds now, const Tenant& holder) {
  if (now < holder.window.end) return kNever;
  const std::pair window{holder_, holder.window.number};
  if (drained_window_ != window) {
    drained_window_ = window;
    Nanoseconds work = options_.most_kernel;
    for (const Tenant& tenant : tenants_) {
      if (!tenant.present || tenant.report.in_flight == 0) continue;
      work += std::min(tenant.report.work_left(now), options_.most_kernel);
      if (&tenant != &holder && tenant.undrained == 0)
        work += tenant.overdue ? options_.most_kernel : tenant.report.longest_ns;
    }
    drained_by_ = now + options_.drain_patience + (work >> holder.undrained);
  }
  return std::max<Nanoseconds>(0, drained_by_ - now);
}

// Whether the report came to its end: if not, the turn kept the device from others whatever it was
// used for, and is paid for whole.
void Arbiter::note_end_of_turn(Nanoseconds now, Tenant& holder, bool drained) {
  if (drained) {
    holder.undrained = 0;
    return;
  }
  holder.undrained = std::min(holder.undrained + 1, 16u);
  ++holder.account.undrained_turns;
  holder.owed += static_cast<double>(now - window_start_);
}

// Of the time since its report, what goes beyond the kernel that it told of.
Nanoseconds Arbiter::untold(Nanoseconds now, const Tenant& holder) {
  const Nanoseconds gone = std::max<Nanoseconds>(0, now - holder.report.since);
  return std::max<Nanoseconds>(0, gone - holder.report.head_ns);
}

// At `at`, foretold by the holder's report. What a report that is overdue foretells moves on with
// the clock, and to ask for it without a pause would keep the core from whoever has to tell: so the
// longer nothing was told, the longer until the next look.
void Arbiter::look_at(Nanoseconds now, const Tenant& holder, Nanoseconds at) {
  const Nanoseconds silent = untold(now, holder);
  const Nanoseconds pause = std::clamp(silent / 8, options_.look_again, options_.drain_poll);
  wake_by(silent > 0 ? std::max(at, now + pause) : at);
}

// Deals with the holder's turn. True: the turn was given up and somebody else may be chosen.
bool Arbiter::passed_on(Nanoseconds now) {
  const auto index = static_cast<std::size_t>(holder_);
  Tenant& holder = tenants_[index];
  Window& window = holder.window;
  if (alone(now)) {
    if (!window.open || window.limited) open(now, index, kNever, Kernels::kUnlimited);
    return false;
  }
  if (!window.limited) {
    // Somebody has come: what is in flight runs out, then it is decided.
    window.limited = true;
    window.end = now + options_.end_when_joined;
    window.beside_online = online_present_;
    note_change(index);
  }
  const bool blocked = holder.report.waiting > 0 || !window.open;
  const Nanoseconds told = holder.report.work_left(now);
  const Nanoseconds left = std::min(told, drain_left(now, holder));
  const bool uncertain =
      holder.report.in_flight > 0 && holder.report.tail_deviation_ns > options_.uncertain &&
      now - holder.closed_at < options_.drain_patience + 2 * holder.report.longest_ns;
  if (!window.open && uncertain) {
    wake_by(now + std::max(options_.drain_poll, left));
    return false;
  }
  const Nanoseconds rest = blocked ? now + left : std::max(now + left, window.end);
  const Nanoseconds lead = longest_lead(now);
  if (now < rest - lead - options_.timer_slack) {
    // More of it may have ended by now than was told.
    const Nanoseconds sooner = rest - untold(now, holder);
    look_at(now, holder, (blocked ? sooner : std::max(sooner, window.end)) - lead);
    return false;
  }
  note_end_of_turn(now, holder, left == told);
  return hand_over(now, rest);
}

// The holder's work ends at `rest`, about as soon as a successor can begin.
bool Arbiter::hand_over(Nanoseconds now, Nanoseconds rest) {
  const auto index = static_cast<std::size_t>(holder_);
  Tenant& holder = tenants_[index];
  const int next = pick_after(now, rest);
  if (next == holder_) {
    const bool one = holder.report.waiting > 0 || !holder.window.open;
    const Nanoseconds end = std::max(rest, now) + quantum(holder);
    open(now, index, end, one ? Kernels::kOne : Kernels::kNone);
    wake_by(end - longest_lead(now));
    return false;
  }
  if (next == kNobody) {
    // A capped tenant has had its share and nobody else may: the device stays idle.
    close(now, index);
    if (holder.report.in_flight == 0) {
      holder_ = kNobody;
      return true;
    }
    look_at(now, holder, now + std::max(options_.least_poll, holder.report.work_left(now)));
    return false;
  }
  Tenant& successor = tenants_[static_cast<std::size_t>(next)];
  const Nanoseconds lead = std::max(options_.least_lead, successor.report.lead_ns);
  if (now < rest - lead - options_.timer_slack) {
    look_at(now, holder, rest - lead);
    return false;
  }
  const bool uncertain =
      holder.report.in_flight > 0 && holder.report.tail_deviation_ns > options_.uncertain;
  const bool patient =
      holder.window.open ||
      now - holder.closed_at < options_.drain_patience + 2 * holder.report.longest_ns;
  if (uncertain && patient) {
    close(now, index);
    wake_by(now + std::max(options_.drain_poll, holder.report.work_left(now)));
    return false;
  }
  successor_ = next;
  handover_at_ = rest;
  open(now, static_cast<std::size_t>(next), rest + quantum(successor), Kernels::kOne);
  successor.window.start = rest;
  close(now, index);
  wake_by(now + options_.unused_grant);
  return false;
}

}  // namespace aliquot::gate
