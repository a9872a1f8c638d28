// Membership, one step, and the classes: who grabs the GPU and who pauses.
#include "gate/arbiter.h"

#include <algorithm>
#include <limits>

#include "gate/scaled.h"

namespace aliquot::gate {
namespace {

constexpr Nanoseconds kNever = std::numeric_limits<Nanoseconds>::max();

}  // namespace

TenantReport bounded(TenantReport report, Nanoseconds now, const ArbiterOptions& options) {
  const auto past = [now](Nanoseconds& time) { time = std::clamp<Nanoseconds>(time, 0, now); };
  past(report.busy_ns);
  past(report.busy_since);
  past(report.busy_until);
  past(report.last_launch);
  report.since = std::clamp<Nanoseconds>(report.since, 0, now + options.most_start_ahead);
  report.longest_ns = std::clamp<Nanoseconds>(report.longest_ns, 0, options.most_kernel);
  report.lead_ns = std::clamp<Nanoseconds>(report.lead_ns, 0, options.most_lead);
  report.head_ns = std::clamp<Nanoseconds>(report.head_ns, 0, options.most_head);
  // The head counts whole until it ends, and one kernel may have been let in behind it. Less would
  // make a long queue look short once its head has run: the holder would be let go on.
  report.outstanding_ns = std::clamp<Nanoseconds>(
      report.outstanding_ns, 0, options.most_in_flight + report.head_ns + report.longest_ns);
  return report;
}

ArbiterOptions slowed(const ArbiterOptions& options, double factor) {
  return scaled(options, factor);
}

Arbiter::Arbiter(const GpuTerms& terms, const ArbiterOptions& options)
    : gpu_(terms), options_(options) {}

std::size_t Arbiter::add(Nanoseconds now, const TenantTerms& terms) {
  settle(now);
  const auto free = std::ranges::find_if(tenants_, [](const Tenant& t) { return !t.present; });
  const auto index = static_cast<std::size_t>(free - tenants_.begin());
  if (free == tenants_.end()) tenants_.emplace_back();
  Tenant& tenant = tenants_[index];
  const std::uint32_t number = tenant.window.number;
  tenant = Tenant{};
  tenant.present = true;
  tenant.terms = terms;
  tenant.window.number = number + 1;
  tenant.inactive_since = tenant.waits_since = now;
  update_shares();
  return index;
}

void Arbiter::remove(Nanoseconds now, std::size_t index) {
  settle(now);
  set_active(now, index, false);
  give_up_turn(now, index);
  tenants_[index].present = false;
  if (check_.tenant == static_cast<int>(index)) check_ = {};
  update_shares();
}

void Arbiter::set_terms(Nanoseconds now, std::size_t index, const TenantTerms& terms) {
  settle(now);
  const bool other_class = tenants_[index].terms.share_class != terms.share_class;
  tenants_[index].terms = terms;
  update_shares();
  if (other_class) give_up_turn(now, index);
  // The window of the old terms ends soon.
  Window& window = tenants_[index].window;
  if (window.open && window.limited) {
    window.end = std::min(window.end, now + options_.least_quantum);
    note_change(index);
  }
}

void Arbiter::set_gpu_terms(Nanoseconds now, const GpuTerms& terms) {
  settle(now);
  gpu_ = terms;
  for (Tenant& tenant : tenants_) tenant.share = {};
  update_shares();
  for (std::size_t i = 0; i < tenants_.size(); ++i) give_up_turn(now, i);
}

// Windows of other rules (native, online: open whoever holds the turn) end with them.
void Arbiter::give_up_turn(Nanoseconds now, std::size_t index) {
  close(now, index);
  if (holder_ == static_cast<int>(index)) holder_ = kNobody;
  if (successor_ == static_cast<int>(index)) successor_ = kNobody;
}

void Arbiter::set_holds_gpu(std::size_t index, bool holds) {
  tenants_[index].holds_gpu = holds;
  update_shares();
}

void Arbiter::mark_offender(std::size_t index, bool offender) {
  tenants_[index].offender = offender;
}

void Arbiter::ban(Nanoseconds now, std::size_t index, Nanoseconds time) {
  tenants_[index].banned_until = std::max(tenants_[index].banned_until, now + time);
  close(now, index);
}

void Arbiter::read_reports(Nanoseconds now, std::span<const TenantReport> reports) {
  for (std::size_t i = 0; i < tenants_.size() && i < reports.size(); ++i) {
    Tenant& tenant = tenants_[i];
    const Nanoseconds launched_before = tenant.report.last_launch;
    tenant.report = bounded(reports[i], now, options_);
    note_tail(now, tenant, launched_before);
    tenant.last_activity = tenant.report.last_activity(now);
    if (tenant.report.waiting == 0 || tenant.window.open || banned(tenant, now))
      tenant.waits_since = now;
    tenant.overdue = now > tenant.report.since + tenant.report.outstanding_ns +
                               options_.most_kernel + options_.drain_patience;
  }
}

Nanoseconds Arbiter::step(Nanoseconds now, std::span<const TenantReport> reports) {
  changed_.clear();
  wake_at_ = kNever;
  read_reports(now, reports);
  settle(now);
  if (gpu_.policy == Policy::kNative) {
    open_all(now);
    return wake_at_;
  }
  if (!held_by_online(now)) {
    update_active(now);
    take_turns(now);
  }
  wake_for_waiting(now);
  return wake_at_;
}

void Arbiter::open(Nanoseconds now, std::size_t index, Nanoseconds end, Kernels kernels) {
  Tenant& tenant = tenants_[index];
  Window& window = tenant.window;
  if (!window.open || tenant.report.last_launch >= tenant.granted_at) tenant.granted_at = now;
  if (!window.open) {
    window.opened_at = now;
    window.start = 0;
    ++tenant.account.windows;
  }
  window.open = true;
  window.end = end;
  window.limited = kernels != Kernels::kUnlimited;
  window.beside_online = online_present_ && !grabs(tenant);
  if (kernels != Kernels::kNone) ++window.number;
  note_change(index);
}

void Arbiter::close(Nanoseconds now, std::size_t index) {
  Tenant& tenant = tenants_[index];
  if (!tenant.window.open) return;
  tenant.window.open = false;
  tenant.closed_at = now;
  note_change(index);
}

void Arbiter::note_change(std::size_t index) {
  if (std::ranges::find(changed_, index) == changed_.end()) changed_.push_back(index);
}

// Policy 5: the driver's own time slices decide.
void Arbiter::open_all(Nanoseconds now) {
  holder_ = successor_ = kNobody;
  for (std::size_t i = 0; i < tenants_.size(); ++i) {
    const Window& window = tenants_[i].window;
    if (!tenants_[i].present || (window.open && !window.limited)) continue;
    if (banned(tenants_[i], now)) {
      wake_by(tenants_[i].banned_until);
      continue;
    }
    open(now, i, kNever, Kernels::kUnlimited);
  }
}

bool Arbiter::grabs(const Tenant& tenant) const {
  return tenant.terms.share_class == ShareClass::kOnline && gpu_.prio_ratio == 0;
}

Nanoseconds Arbiter::release_time() const {
  if (!gpu_.release_auto) return gpu_.release;
  return std::clamp(4 * longest_kernel(Whose::kOffline), options_.least_release,
                    options_.most_release);
}

// Online tenants are never limited. While one works, and `release` after, all others are closed.
bool Arbiter::held_by_online(Nanoseconds now) {
  online_present_ = false;
  bool working = false;
  for (std::size_t i = 0; i < tenants_.size(); ++i) {
    const Tenant& tenant = tenants_[i];
    if (!tenant.present || !grabs(tenant) || banned(tenant, now)) continue;
    online_present_ = true;
    if (!tenant.window.open || tenant.window.limited) open(now, i, kNever, Kernels::kUnlimited);
    if (tenant.report.last_launch > 0) last_online_ = std::max(last_online_, tenant.last_activity);
    if (has_work(tenant) || tenant.report.inside > 0) working = true;
  }
  if (!online_present_) return false;
  if (working) last_online_ = now;
  const Nanoseconds until = last_online_ + release_time();
  if (last_online_ == 0 || now >= until) return false;
  for (std::size_t i = 0; i < tenants_.size(); ++i) {
    if (tenants_[i].present && !grabs(tenants_[i])) close(now, i);
  }
  holder_ = successor_ = kNobody;
  wake_by(until);
  return true;
}

// Active: it has work, or had until just now. Only active tenants count in virtual time.
void Arbiter::update_active(Nanoseconds now) {
  bool any = false;
  for (std::size_t i = 0; i < tenants_.size(); ++i) {
    Tenant& tenant = tenants_[i];
    if (!tenant.present || grabs(tenant)) continue;
    const bool has_turn = static_cast<int>(i) == holder_ || static_cast<int>(i) == successor_;
    const bool lately =
        now - tenant.last_activity < options_.stays_active && tenant.last_activity > 0;
    const bool active =
        !banned(tenant, now) &&
        (has_turn || ((has_work(tenant) || lately) && !throttled(tenant, tenant.report.lead_ns)));
    if (active == tenant.active) continue;
    any = true;
    set_active(now, i, active);
    if (active && tenant.report.waiting > 0) cut_window(now, tenant);
  }
  if (any && gpu_.prio_ratio > 0) update_shares();
  for (int* turn : {&holder_, &successor_}) {
    if (*turn == kNobody || tenants_[static_cast<std::size_t>(*turn)].active) continue;
    close(now, static_cast<std::size_t>(*turn));
    *turn = kNobody;
  }
}

// A newcomer that is owed time does not wait for the end of a long window.
void Arbiter::cut_window(Nanoseconds now, const Tenant& newcomer) {
  if (holder_ == kNobody || successor_ != kNobody) return;
  Tenant& holder = tenants_[static_cast<std::size_t>(holder_)];
  if (&holder == &newcomer || !holder.window.limited) return;
  const bool first = newcomer.terms.share_class > holder.terms.share_class ||
                     newcomer.terms.priority > holder.terms.priority;
  const double deadline =
      newcomer.ve + static_cast<double>(options_.cut_to) / newcomer.share.percent;
  const double holders = holder.ve + static_cast<double>(quantum(holder)) / holder.share.percent;
  if (newcomer.ve > virtual_time() + 1 || (!first && deadline > holders)) return;
  const Nanoseconds end = std::max(now + options_.grace, window_start_ + options_.cut_to);
  if (end >= holder.window.end) return;
  holder.window.end = end;
  note_change(static_cast<std::size_t>(holder_));
}

// Whoever waits has a timer, whatever message is lost.
void Arbiter::wake_for_waiting(Nanoseconds now) {
  for (std::size_t i = 0; i < tenants_.size(); ++i) {
    const Tenant& tenant = tenants_[i];
    if (!tenant.present) continue;
    const bool has_turn = static_cast<int>(i) == holder_ || static_cast<int>(i) == successor_;
    // Else an idle tenant would count as active, and save up, until something else happens.
    if (tenant.active && !has_turn && !has_work(tenant)) {
      wake_by(std::max(now + options_.least_poll, tenant.last_activity + options_.stays_active));
    }
    if (tenant.report.waiting == 0) continue;
    wake_by(now + options_.backstop);
    if (banned(tenant, now)) wake_by(tenant.banned_until);
    if (throttled(tenant, 0)) {
      const double rate = tenant.share.percent / 100.0;
      wake_by(now + std::max<Nanoseconds>(options_.least_poll,
                                          static_cast<Nanoseconds>(-tenant.cap_credit / rate) -
                                              tenant.report.lead_ns));
    }
  }
}

Standing Arbiter::standing(Nanoseconds now, std::size_t index) const {
  const Tenant& tenant = tenants_[index];
  if (banned(tenant, now)) return Standing::kBanned;
  if (tenant.window.open) return has_work(tenant) ? Standing::kHolding : Standing::kIdle;
  if (!has_work(tenant)) return Standing::kIdle;
  if (online_present_ && now < last_online_ + release_time()) return Standing::kPausedByOnline;
  return throttled(tenant, 0) ? Standing::kCapped : Standing::kWaiting;
}

}  // namespace aliquot::gate
