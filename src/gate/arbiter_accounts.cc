// Accounts: what each tenant is charged, and the virtual time that makes charges into turns.
#include <algorithm>
#include <cmath>
#include <limits>

#include "gate/arbiter.h"

namespace aliquot::gate {
namespace {

// A holder that reports less than this of its window's wall clock is charged all of it.
constexpr double kBelievedFraction = 0.9;
// Of its time, how much of what a tenant claims may be taken for others' slices.
constexpr double kForeignFraction = 0.03;

}  // namespace

void Arbiter::settle(Nanoseconds now) {
  const auto wall = static_cast<double>(now - settled_at_);
  if (wall <= 0) return;
  allow(now, settled_at_);
  settled_at_ = now;
  used_.assign(tenants_.size(), 0.0);
  read_use(now, wall);
  check_holder(wall);
  for (std::size_t i = 0; i < tenants_.size(); ++i) {
    if (tenants_[i].present && used_[i] > 0) charge(i, std::llround(used_[i]));
  }
  fill_credit(wall);
  forgive();
}

// One kernel in flight may be as long as the longest. Nothing comes to what is in flight when a
// window closes but what was on its way then. Work that has begun and is not in flight is a lie.
void Arbiter::note_tail(Nanoseconds now, Tenant& tenant, Nanoseconds launched_before) {
  const TenantReport& report = tenant.report;
  const bool known = report.longest_ns > 0 && (report.in_flight > 0 || report.busy_since == 0);
  const double tail = known ? static_cast<double>(report.work_left(now) + report.longest_ns)
                            : std::numeric_limits<double>::infinity();
  if (tenant.window.open)
    tenant.tail = tail;
  else if (report.last_launch != launched_before)
    tenant.tail = std::max(tenant.tail, tail);
}

// After a hand-over the device may give the successor a slice before the tail of the holder has
// ended. Both say then that they are at work; what is more than the tail was the successor's. Split
// evenly, each such slice would put both a millisecond off, and these errors add up (30 ms in a
// minute). It happens now and then: whoever has longer tails than he tells each time gains no more.
void Arbiter::bound_tails(double wall, double& excess) {
  for (std::size_t i = 0; i < tenants_.size(); ++i) {
    Tenant& tenant = tenants_[i];
    tenant.foreign = std::min(tenant.foreign + wall * kForeignFraction,
                              static_cast<double>(options_.foreign_slices));
    if (!tenant.present || tenant.window.open) continue;
    const double over =
        std::clamp(used_[i] - tenant.tail, 0.0, std::clamp(excess, 0.0, tenant.foreign));
    used_[i] -= over;
    excess -= over;
    tenant.foreign -= over;
  }
}

// Work of two tenants that has begun at the same time (at a hand-over) shares the wall clock:
// neither is charged for what the other ran. Reports are bounded by the wall clock.
void Arbiter::read_use(Nanoseconds now, double wall) {
  double sum = 0;
  for (std::size_t i = 0; i < tenants_.size(); ++i) {
    Tenant& tenant = tenants_[i];
    if (!tenant.present) continue;
    const Nanoseconds busy = tenant.report.busy(now);
    used_[i] = std::clamp(static_cast<double>(busy - tenant.seen_busy), 0.0, wall);
    tenant.seen_busy = std::max(tenant.seen_busy, busy);
    sum += used_[i];
  }
  double excess = sum - wall;
  bound_tails(wall, excess);
  while (excess > 1.0) {
    const auto sharers = std::ranges::count_if(used_, [](double ns) { return ns > 0; });
    const double cut = excess / static_cast<double>(sharers);
    for (double& ns : used_) {
      const double less = std::min(ns, cut);
      ns -= less;
      excess -= less;
    }
  }
  for (std::size_t i = 0; i < tenants_.size(); ++i)
    if (!tenants_[i].window.open) tenants_[i].tail = std::max(0.0, tenants_[i].tail - used_[i]);
  // Silence inside the own open window keeps others out: it is paid for.
  if (holder_ == kNobody || sum >= wall) return;
  const Tenant& holder = tenants_[static_cast<std::size_t>(holder_)];
  const bool launched = holder.report.last_launch >= holder.window.opened_at;
  if (holder.window.open && launched && holder.report.waiting == 0) {
    used_[static_cast<std::size_t>(holder_)] += wall - sum;
  }
}

// False reports do not pay: over a window the holder is charged the wall clock if it reports
// clearly less.
void Arbiter::check_holder(double wall) {
  if (check_.tenant != kNobody && (check_.tenant != holder_ || check_.start != window_start_ ||
                                   check_.wall > static_cast<double>(options_.check_every))) {
    Tenant& checked = tenants_[static_cast<std::size_t>(check_.tenant)];
    const double believed =
        check_.wall * kBelievedFraction - static_cast<double>(options_.check_slack);
    if (checked.present && check_.reported < believed) {
      ++checked.account.false_reports;
      charge(static_cast<std::size_t>(check_.tenant), std::llround(check_.wall - check_.reported));
    }
    check_ = {};
  }
  if (holder_ == kNobody) return;
  const Tenant& holder = tenants_[static_cast<std::size_t>(holder_)];
  check_.tenant = holder_;
  check_.start = window_start_;
  const double own = used_[static_cast<std::size_t>(holder_)];
  check_.reported += own;
  if (!holder.window.open && holder.report.in_flight == 0) return;
  // What others say they ran is theirs: the tail of the holder before is no false report.
  double others = -own;
  for (const double ns : used_) others += ns;
  check_.wall += std::max(0.0, wall - others);
}

void Arbiter::charge(std::size_t index, Nanoseconds used) {
  Tenant& tenant = tenants_[index];
  tenant.account.charged_ns += used;
  const auto ns = static_cast<double>(used);
  if (tenant.active) {
    tenant.ve += ns / tenant.share.percent;
  } else {
    tenant.lag -= ns;
  }
  if (tenant.share.capped) tenant.cap_credit -= ns;
}

// For the audit: how long each tenant could have used the device without passing the gate by.
void Arbiter::allow(Nanoseconds now, Nanoseconds before) {
  for (Tenant& tenant : tenants_) {
    if (!tenant.present) continue;
    if (tenant.window.open) {
      tenant.account.allowed_ns += now - before;
      continue;
    }
    const Nanoseconds tail = options_.most_in_flight + 2 * tenant.report.longest_ns;
    tenant.account.allowed_ns +=
        std::max<Nanoseconds>(0, std::min(now, tenant.closed_at + tail) - before);
  }
}

// A capped tenant earns its share of the wall clock. Idle, it can save only a little of it; what it
// earns while it waits for others is owed to it.
void Arbiter::fill_credit(double wall) {
  for (Tenant& tenant : tenants_) {
    if (!tenant.present || !tenant.share.capped) continue;
    const double part = tenant.share.percent / 100.0;
    const double most = has_work(tenant) ? static_cast<double>(options_.most_debt) * part
                                         : static_cast<double>(options_.most_credit);
    tenant.cap_credit = std::min(tenant.cap_credit + wall * part, most);
  }
}

// Nobody pays for ever for one long kernel: debt above a second's worth of the share is let go,
// and counted. Offenders pay all, and so does everybody for a turn that did not come to its end:
// the holder's debt is known when its turn is over.
void Arbiter::forgive() {
  const double v = virtual_time();
  const Nanoseconds kernel = longest_kernel(Whose::kAll);
  for (std::size_t i = 0; i < tenants_.size(); ++i) {
    Tenant& tenant = tenants_[i];
    if (!tenant.present || tenant.offender || static_cast<int>(i) == holder_) continue;
    if (tenant.active) {
      const double debt = tenant.share.percent * (tenant.ve - v);
      tenant.owed = std::clamp(debt, 0.0, tenant.owed);
      const double over = debt - most_debt(tenant);
      if (over > 0) {
        tenant.ve -= over / tenant.share.percent;
        tenant.account.forgiven_ns += std::llround(over);
      }
    }
    if (!tenant.share.capped) continue;
    // Nor may its cap keep it waiting for longer than it may wait.
    const auto wait = static_cast<double>(goes_first_after(tenant, kernel));
    const double most = wait * tenant.share.percent / 100.0 + tenant.owed;
    tenant.cap_credit = std::max(tenant.cap_credit, -std::min(most_debt(tenant), most));
  }
}

double Arbiter::most_debt(const Tenant& tenant) const {
  return static_cast<double>(options_.most_debt) * tenant.share.percent / 100.0 + tenant.owed;
}

double Arbiter::virtual_time() const {
  double shares = 0;
  double sum = 0;
  for (const Tenant& tenant : tenants_) {
    if (!tenant.present || !tenant.active) continue;
    shares += tenant.share.percent;
    sum += tenant.share.percent * tenant.ve;
  }
  return shares > 0 ? sum / shares : last_virtual_time_;
}

Nanoseconds Arbiter::lag(std::size_t index) const {
  const Tenant& tenant = tenants_[index];
  if (!tenant.active) return std::llround(tenant.lag);
  return std::llround(tenant.share.percent * (virtual_time() - tenant.ve));
}

void Arbiter::set_active(Nanoseconds now, std::size_t index, bool active) {
  Tenant& tenant = tenants_[index];
  if (tenant.active == active) return;
  const double v = virtual_time();
  if (!active) {
    last_virtual_time_ = v;
    tenant.lag = tenant.share.percent * (v - tenant.ve);
    tenant.inactive_since = now;
    tenant.active = false;
    return;
  }
  const auto away = static_cast<double>(now - tenant.inactive_since);
  // A debt is paid off at the tenant's own rate while it sleeps; credit does not keep.
  if (tenant.lag < 0) tenant.lag = std::min(0.0, tenant.lag + away * tenant.share.percent / 100.0);
  if (away > static_cast<double>(options_.keeps_lag)) {
    tenant.lag = std::min(tenant.lag, static_cast<double>(options_.most_credit));
  }
  if (!tenant.offender) {
    const double most = most_debt(tenant);
    if (tenant.lag < -most) tenant.account.forgiven_ns += std::llround(-most - tenant.lag);
    tenant.lag = std::max(tenant.lag, -most);
  }
  // Coming back moves V towards the tenant's own virtual time: so much further off it must be for
  // its lag to be what it was.
  double others = 0;
  for (const Tenant& other : tenants_)
    if (other.present && other.active) others += other.share.percent;
  const double drawn = others > 0 ? 1 + tenant.share.percent / others : 1;
  tenant.ve = v - drawn * tenant.lag / tenant.share.percent;
  tenant.active = true;
}

void Arbiter::update_shares() {
  std::vector<Claim> claims;
  for (const Tenant& tenant : tenants_) {
    if (tenant.present) claims.push_back({tenant.terms, tenant.holds_gpu, tenant.active});
  }
  const std::vector<Share> shares = shares_of(gpu_, claims);
  std::size_t next = 0;
  for (Tenant& tenant : tenants_) {
    if (tenant.present) set_share(tenant, shares[next++]);
  }
}

// What is owed or due stays owed or due, as device time.
void Arbiter::set_share(Tenant& tenant, const Share& share) {
  if (tenant.share == share) return;
  const double v = virtual_time();
  const double lag = tenant.share.percent * (v - tenant.ve);
  if (share.capped && !tenant.share.capped) tenant.cap_credit = 0;
  tenant.share = share;
  // Who holds no GPU under policies 1 and 2 has no share; it has no work either.
  if (tenant.share.percent <= 0) tenant.share.percent = 1.0;
  if (tenant.active) tenant.ve = v - lag / tenant.share.percent;
}

// Must a capped tenant wait, even if it begins only in `ahead`?
bool Arbiter::throttled(const Tenant& tenant, Nanoseconds ahead) const {
  if (!tenant.share.capped) return false;
  return tenant.cap_credit + static_cast<double>(ahead) * tenant.share.percent / 100.0 < 0;
}

// Long enough that hand-overs cost little, and for two kernels at least: a window of one kernel
// makes its end one estimate, and errors chain.
Nanoseconds Arbiter::quantum(const Tenant& tenant) const {
  const auto active = std::max<std::int64_t>(
      1, std::ranges::count_if(tenants_, [](const Tenant& t) { return t.present && t.active; }));
  Nanoseconds q = std::max(options_.least_quantum,
                           std::min(options_.quantum_round / active,
                                    std::max(options_.least_quantum, options_.most_quantum)));
  const Nanoseconds longest = tenant.report.longest_ns;
  if (longest > q / 2) {
    q = std::max(q, std::min(longest * 21 / 10, options_.two_kernel_quantum));
  }
  // Whoever must drain before a hand-over gets fewer of them.
  if (tenant.report.tail_deviation_ns > options_.uncertain) q += q / 2;
  // A small share has short ones: paying for one takes q / share, and becoming the first among
  // those that are due as long again.
  const auto earned = static_cast<Nanoseconds>(static_cast<double>(options_.most_debt) *
                                               tenant.share.percent / 100.0);
  // One long kernel takes what it takes, but no longer than is paid back: the rest would be
  // forgiven.
  return std::min(std::max(std::min(q, earned / 2), longest),
                  std::max(options_.least_quantum, earned));
}

Nanoseconds Arbiter::longest_kernel(Whose whose) const {
  Nanoseconds longest = 0;
  for (const Tenant& tenant : tenants_) {
    const bool online = tenant.terms.share_class == ShareClass::kOnline;
    if (!tenant.present || (online && whose == Whose::kOffline)) continue;
    longest = std::max(longest, tenant.report.longest_ns);
  }
  return longest;
}

}  // namespace aliquot::gate
