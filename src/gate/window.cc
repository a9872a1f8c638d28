#include "gate/window.h"

namespace aliquot::gate {
namespace {

constexpr std::uint64_t kMax20 = (1u << 20) - 1;
constexpr std::uint64_t kMax21 = (1u << 21) - 1;
constexpr std::uint64_t kMax24 = (1u << 24) - 1;

std::uint64_t at_most(std::uint64_t value, std::uint64_t limit) {
  return value < limit ? value : limit;
}
// Durations travel in whole microseconds, rounded to the nearest.
std::uint64_t micros(Nanoseconds ns, std::uint64_t limit) {
  return ns <= 0 ? 0 : at_most((static_cast<std::uint64_t>(ns) + 500) / 1000, limit);
}
// Since when work has been begun; while none is, the complement of when the last of it ended.
Nanoseconds busy_word(const TenantReport& report) {
  return report.busy_since > 0 ? report.busy_since : ~report.busy_until;
}
Nanoseconds nanos(std::uint64_t micros) { return static_cast<Nanoseconds>(micros * 1000); }

}  // namespace

void store_words(const TenantReport& report, std::uint64_t (&words)[kReportWords]) {
  words[0] = static_cast<std::uint64_t>(report.busy_ns);
  words[1] = static_cast<std::uint64_t>(busy_word(report));
  words[2] = static_cast<std::uint64_t>(report.last_launch);
  words[3] = static_cast<std::uint64_t>(report.since);
  words[4] = at_most(report.in_flight, kMax24) | at_most(report.waiting, kMax20) << 24 |
             at_most(report.inside, kMax20) << 44;
  words[5] = micros(report.outstanding_ns, UINT32_MAX) | micros(report.head_ns, UINT32_MAX) << 32;
  words[6] = micros(report.tail_deviation_ns, kMax21) | micros(report.longest_ns, kMax21) << 21 |
             micros(report.lead_ns, kMax21) << 42;
}

TenantReport report_from(const std::uint64_t (&words)[kReportWords]) {
  const auto busy = static_cast<Nanoseconds>(words[1]);
  return {.busy_ns = static_cast<Nanoseconds>(words[0]),
          .busy_since = busy > 0 ? busy : 0,
          .busy_until = busy < 0 ? ~busy : 0,
          .last_launch = static_cast<Nanoseconds>(words[2]),
          .since = static_cast<Nanoseconds>(words[3]),
          .in_flight = static_cast<std::uint32_t>(words[4] & kMax24),
          .waiting = static_cast<std::uint32_t>(words[4] >> 24 & kMax20),
          .inside = static_cast<std::uint32_t>(words[4] >> 44 & kMax20),
          .outstanding_ns = nanos(words[5] & UINT32_MAX),
          .head_ns = nanos(words[5] >> 32),
          .tail_deviation_ns = nanos(words[6] & kMax21),
          .longest_ns = nanos(words[6] >> 21 & kMax21),
          .lead_ns = nanos(words[6] >> 42 & kMax21)};
}

}  // namespace aliquot::gate
