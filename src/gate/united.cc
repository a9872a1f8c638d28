#include "gate/united.h"

#include <algorithm>

namespace aliquot::gate {

void UnitedReports::begin(Nanoseconds now) {
  looked_at_ = now_;
  now_ = std::max(now_, now);
  begun_.clear();
  sum_ = {};
}

void UnitedReports::add(Process& process, const TenantReport& report) {
  const Nanoseconds busy = report.busy(now_);
  const Nanoseconds grown =
      process.known ? std::clamp<Nanoseconds>(busy - process.seen_busy, 0, now_ - looked_at_) : 0;
  process = {.known = true, .seen_busy = busy};
  // Until now, or until its last work ended.
  const Nanoseconds end =
      report.busy_since > 0 ? now_
                            : std::clamp<Nanoseconds>(report.busy_until, looked_at_ + grown, now_);
  if (grown > 0) begun_.emplace_back(end - grown, end);
  merge(report);
}

TenantReport UnitedReports::end() {
  const bool was_at_work = at_work_;
  at_work_ = !begun_.empty() && sum_.in_flight > 0;
  if (begun_.size() > 1 && was_at_work && at_work_) begun_.assign(1, {looked_at_, now_});
  std::ranges::sort(begun_);
  Nanoseconds counted_to = looked_at_;
  for (const auto& [from, to] : begun_) {
    busy_ns_ += std::max<Nanoseconds>(0, to - std::max(from, counted_to));
    counted_to = std::max(counted_to, to);
  }
  sum_.busy_ns = busy_ns_;
  return sum_;
}

void UnitedReports::merge(const TenantReport& other) {
  const auto larger = [](Nanoseconds& a, Nanoseconds b) { a = std::max(a, b); };
  larger(sum_.last_launch, other.last_launch);
  // The head is the older one of those in flight; without any, `since` is the last completion.
  if (other.in_flight > 0 && (sum_.in_flight == 0 || other.since < sum_.since)) {
    sum_.since = other.since;
    sum_.head_ns = other.head_ns;
  } else if (sum_.in_flight == 0) {
    larger(sum_.since, other.since);
  }
  // The quickest to get going counts: it is the first to launch.
  if (other.lead_ns > 0 && (sum_.lead_ns == 0 || other.lead_ns < sum_.lead_ns))
    sum_.lead_ns = other.lead_ns;
  sum_.in_flight += other.in_flight;
  sum_.waiting += other.waiting;
  sum_.inside += other.inside;
  sum_.outstanding_ns += other.outstanding_ns;
  larger(sum_.tail_deviation_ns, other.tail_deviation_ns);
  larger(sum_.longest_ns, other.longest_ns);
}

}  // namespace aliquot::gate
