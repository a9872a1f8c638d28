#include "gate/audit.h"

#include <algorithm>
#include <cmath>

namespace aliquot::gate {

AuditOptions slowed(AuditOptions options, double factor) {
  const auto times = [factor](Nanoseconds& time) {
    time = static_cast<Nanoseconds>(static_cast<double>(time) * factor);
  };
  times(options.spacing);
  times(options.memory);
  return options;
}

void Audit::note(Nanoseconds now, std::span<const Nanoseconds> allowed) {
  if (!history_.empty() && now - history_.back().time < options_.spacing) return;
  history_.push_back({now, {allowed.begin(), allowed.end()}});
  // The last one older than the memory stays: it is where interpolation begins.
  while (history_.size() > 2 && history_[1].time < now - options_.memory) history_.pop_front();
  if (since_.size() < allowed.size()) since_.resize(allowed.size(), history_.front().time);
  in_a_row_.resize(since_.size(), 0);
}

// Interpolated; after the last note a window that was open is taken to have stayed so.
double Audit::allowed_by(std::size_t tenant, Nanoseconds time) const {
  const auto of = [&](const Allowance& a) {
    return tenant < a.allowed.size() ? static_cast<double>(a.allowed[tenant]) : 0.0;
  };
  const auto after =
      std::ranges::find_if(history_, [&](const Allowance& a) { return a.time >= time; });
  if (after == history_.begin()) return of(*after);
  const Allowance& before = *(after - 1);
  if (after == history_.end()) {
    return of(before) + static_cast<double>(time - before.time);
  }
  const double part =
      static_cast<double>(time - before.time) / static_cast<double>(after->time - before.time);
  return of(before) + part * (of(*after) - of(before));
}

Audit::Finding Audit::sample(std::size_t tenant, Nanoseconds end, Nanoseconds period,
                             double percent) {
  if (tenant >= since_.size() || end - period < since_[tenant]) return {};
  if (end - period < history_.front().time) return {};
  const double allowed = allowed_by(tenant, end) - allowed_by(tenant, end - period);
  const double used = percent / 100.0 * static_cast<double>(period);
  const double excess = used - allowed;
  const double points = 100.0 * excess / static_cast<double>(period);
  if (points <= options_.tolerated_percent) {
    in_a_row_[tenant] = 0;
    return {};
  }
  const bool offender = ++in_a_row_[tenant] >= 2 || points >= options_.flagrant_percent;
  return {std::llround(excess), offender};
}

void Audit::forget(std::size_t tenant) {
  if (tenant >= since_.size()) return;
  since_[tenant] = history_.empty() ? 0 : history_.back().time;
  in_a_row_[tenant] = 0;
}

}  // namespace aliquot::gate
