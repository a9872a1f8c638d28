// What the two sides of the compute gate tell each other: the window (broker to tenant) and the
// report (tenant to broker), as values and as the 64-bit words that shared memory carries.
//
// Times are nanoseconds of one monotonic clock that both sides read. Values; no thread rules.
// Needs no library at run time: the interposer includes this header.
#pragma once

#include <cstdint>

#include "common/clock.h"

namespace aliquot::gate {

// May the tenant launch, and until when. The broker writes it.
struct Window {
  bool open = false;
  bool limited = false;        // somebody else wants the GPU: `end` counts, little may be in flight
  bool beside_online = false;  // offline while an online lease exists: even less in flight
  std::uint32_t number = 0;    // each number admits one kernel, however long (see TenantGate)
  Nanoseconds end = 0;
  Nanoseconds start = 0;      // when the work of the tenant before should have ended
  Nanoseconds opened_at = 0;  // the word went from closed to open
  bool operator==(const Window&) const = default;
};

inline constexpr unsigned kWindowWords = 4;

// words[0] is the one a launch reads; the broker stores it last (release).
inline void store_words(const Window& window, std::uint64_t (&words)[kWindowWords]) {
  words[0] = (window.open ? 1u : 0u) | (window.limited ? 2u : 0u) |
             (window.beside_online ? 4u : 0u) | (static_cast<std::uint64_t>(window.number) << 32);
  words[1] = static_cast<std::uint64_t>(window.end);
  words[2] = static_cast<std::uint64_t>(window.start);
  words[3] = static_cast<std::uint64_t>(window.opened_at);
}
inline Window window_from(const std::uint64_t (&words)[kWindowWords]) {
  return {.open = (words[0] & 1) != 0,
          .limited = (words[0] & 2) != 0,
          .beside_online = (words[0] & 4) != 0,
          .number = static_cast<std::uint32_t>(words[0] >> 32),
          .end = static_cast<Nanoseconds>(words[1]),
          .start = static_cast<Nanoseconds>(words[2]),
          .opened_at = static_cast<Nanoseconds>(words[3])};
}
// Open and nobody else: the only test on the path of an uncontended launch.
inline bool is_open_alone(std::uint64_t first_word) { return (first_word & 3) == 1; }

// What a tenant says of itself. Untrusted: the broker bounds what it believes.
struct TenantReport {
  Nanoseconds busy_ns = 0;     // device time with own work begun, up to busy_since
  Nanoseconds busy_since = 0;  // own work has been begun without a break since; 0: none is
  Nanoseconds busy_until = 0;  // while none is: when the last of it ended
  Nanoseconds last_launch = 0;
  Nanoseconds since = 0;  // work in flight: when its head began; else the last completion
  std::uint32_t in_flight = 0;
  std::uint32_t waiting = 0;          // threads at the closed gate
  std::uint32_t inside = 0;           // threads in a launch, or asleep in the limiter
  Nanoseconds outstanding_ns = 0;     // estimated, all in flight
  Nanoseconds head_ns = 0;            // estimated, the first of them
  Nanoseconds tail_deviation_ns = 0;  // of the estimate of the last launched
  Nanoseconds longest_ns = 0;         // longest kernel lately
  Nanoseconds lead_ns = 0;            // from an opened window to the first launch
  bool operator==(const TenantReport&) const = default;

  // Of own work begun, up to `now`.
  Nanoseconds busy(Nanoseconds now) const {
    return busy_ns + (busy_since > 0 && now > busy_since ? now - busy_since : 0);
  }
  // How long the device still works for this tenant. Of the elapsed time no more than the head's
  // estimate is believed: a late kernel, or a foreign slice, must not melt the rest away.
  Nanoseconds work_left(Nanoseconds now) const {
    if (in_flight == 0) return 0;
    const Nanoseconds gone = now > since ? now - since : 0;
    const Nanoseconds left = outstanding_ns - (gone < head_ns ? gone : head_ns);
    return left > 0 ? left : 0;
  }
  Nanoseconds last_activity(Nanoseconds now) const {
    const Nanoseconds seen = since < now ? since : now;
    return last_launch > seen ? last_launch : seen;
  }
};

inline constexpr unsigned kReportWords = 7;

void store_words(const TenantReport& report, std::uint64_t (&words)[kReportWords]);
TenantReport report_from(const std::uint64_t (&words)[kReportWords]);

}  // namespace aliquot::gate
