// The gate's words in shared memory: written by one side, read whole by the other.
//
// A window's first word, and a report's sequence beside it, count the changes: odd while the other
// words are being written. A reader that meets an odd count, or two different ones, reads again, a
// bounded number of times: who was killed while writing must not stop it. One writer at a time.
// Any thread may read. Needs no library at run time. Bytes: docs/formats/gate_words.md.
#pragma once

#include <atomic>
#include <cstdint>

#include "gate/window.h"

namespace aliquot::gate {

inline constexpr unsigned kChangesShift = 3;
inline constexpr std::uint64_t kChangesMask = 0xffff'fff8;  // bits 3 to 31 of the first word
inline constexpr unsigned kReadTries = 100;

// Waiters then need a FUTEX_WAKE on the low half of `first`, which differs after every change.
inline void publish(const Window& window, std::atomic<std::uint64_t>& first,
                    std::atomic<std::uint64_t>* rest) {
  std::uint64_t words[kWindowWords];
  store_words(window, words);
  const std::uint64_t old = first.load(std::memory_order_relaxed);
  const std::uint64_t odd = old | (1u << kChangesShift);
  first.store(odd, std::memory_order_relaxed);
  for (unsigned i = 1; i < kWindowWords; ++i)
    rest[i - 1].store(words[i], std::memory_order_release);
  const std::uint64_t changes = ((odd & kChangesMask) + (1u << kChangesShift)) & kChangesMask;
  first.store(words[0] | changes, std::memory_order_release);
}

// False: its writer is not done (or dead); `into` is then a mixture of old and new.
inline bool read_window(const std::atomic<std::uint64_t>& first,
                        const std::atomic<std::uint64_t>* rest, Window& into) {
  bool whole = false;
  std::uint64_t words[kWindowWords];
  for (unsigned tries = 0; tries < kReadTries && !whole; ++tries) {
    words[0] = first.load(std::memory_order_acquire);
    for (unsigned i = 1; i < kWindowWords; ++i)
      words[i] = rest[i - 1].load(std::memory_order_acquire);
    whole = (words[0] & (1u << kChangesShift)) == 0 &&
            first.load(std::memory_order_relaxed) == words[0];
  }
  into = window_from(words);
  return whole;
}

inline void publish(const TenantReport& report, std::atomic<std::uint32_t>& sequence,
                    std::atomic<std::uint64_t>* words) {
  std::uint64_t stored[kReportWords];
  store_words(report, stored);
  const std::uint32_t odd = sequence.load(std::memory_order_relaxed) | 1u;
  sequence.store(odd, std::memory_order_relaxed);
  for (unsigned i = 0; i < kReportWords; ++i) words[i].store(stored[i], std::memory_order_release);
  sequence.store(odd + 1, std::memory_order_release);
}

inline bool read_report(const std::atomic<std::uint32_t>& sequence,
                        const std::atomic<std::uint64_t>* words, TenantReport& into) {
  bool whole = false;
  std::uint64_t read[kReportWords];
  for (unsigned tries = 0; tries < kReadTries && !whole; ++tries) {
    const std::uint32_t before = sequence.load(std::memory_order_acquire);
    for (unsigned i = 0; i < kReportWords; ++i) read[i] = words[i].load(std::memory_order_acquire);
    whole = (before & 1) == 0 && sequence.load(std::memory_order_relaxed) == before;
  }
  into = report_from(read);
  return whole;
}

}  // namespace aliquot::gate
