// States of the quota model: small, comparable byte for byte, hashed to 128 bits. Test code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "wire/ledger.h"

namespace aliquot::wire::model {

inline constexpr int kThreads = 3, kProcesses = 3, kSlots = 3, kOperations = 5;
inline constexpr std::uint8_t kBumping = 9;  // as the broker's slot: no reclaim, a bump

// Where a thread stands: before which shared access (R1-R6 of docs/formats/ledger.md).
enum class At : std::uint8_t {
  kIdle,
  kReadLow,
  kReadHigh,
  kDecide,
  kRefuse,
  kReadTag,
  kReadBytes,
  kProveHead,
  kHelp,
  kReadOwn,
  kSwapHead,
  kDone,
  kFreeSlot,  // broker only
};

struct Thread {
  At at;
  std::uint8_t next;                                            // operation
  std::uint8_t used, sequence, after, slot, bytes, tag, limit;  // what it has read
  std::uint8_t held[kOperations], held_count, rolling_back;
};

struct State {
  std::uint8_t used, sequence, after, slot;  // head
  std::uint8_t bytes[kSlots], tag[kSlots];   // mirrors
  std::uint8_t limit;                        // grant
  std::uint8_t table[kSlots];                // broker's file: 0 free, else process + 1
  std::uint8_t alive;                        // a bit per process
  Thread thread[kThreads], broker;
  std::uint8_t broker_slot;
  std::uint8_t kills, broker_kills, respawns, lowered;  // lowered: 1 stored, 2 in force
  std::uint8_t held[kSlots];                            // the truth
  std::uint8_t in_force;                                // what every later reserve must obey
};
static_assert(sizeof(State) < 128);

inline bool is_alive(const State& s, std::uint8_t process) { return (s.alive >> process & 1) != 0; }

inline int slot_of(const State& s, std::uint8_t process) {
  for (int i = 0; i < kSlots; ++i)
    if (s.table[i] == process + 1) return i;
  return -1;
}

inline bool head_is(const State& s, const Thread& t) {
  return s.used == t.used && s.sequence == t.sequence && s.after == t.after && s.slot == t.slot;
}

inline std::uint8_t effective_bytes(const State& s, std::uint8_t slot) {
  return s.slot == slot ? s.after : s.bytes[slot];
}

inline void forget_all(Thread& t) {
  t.used = t.sequence = t.after = t.slot = t.bytes = t.tag = t.limit = 0;
}

// What no later step reads is forgotten, so that equal futures are one state.
inline void forget_unread(Thread& t) {
  const At p = t.at;
  const auto within = [p](At from, At to) { return p >= from && p <= to; };
  if (!within(At::kReadHigh, At::kSwapHead)) t.sequence = t.used = 0;
  if (!within(At::kDecide, At::kSwapHead)) t.after = t.slot = 0;
  if (!within(At::kReadBytes, At::kHelp)) t.tag = 0;
  if (!within(At::kProveHead, At::kHelp) && p != At::kSwapHead) t.bytes = 0;
  if (p != At::kRefuse) t.limit = 0;
}

// A set of 128-bit hashes: at 10^8 states the chance of one collision is about 10^-23.
class StateSet {
 public:
  StateSet() : table_(1 << 20) {}

  // False: it was there.
  bool add(const State& state) {
    if (!insert(hash(state))) return false;
    if (++count_ * 10 > table_.size() * 6) grow();
    return true;
  }

 private:
  static Word128 hash(const State& state) {
    std::uint64_t words[16] = {};
    std::memcpy(words, &state, sizeof state);
    std::uint64_t x = 0x243F6A8885A308D3ull, y = 0x13198A2E03707344ull;
    for (const std::uint64_t word : words) {
      x = (x ^ word) * 0x9FB21C651E98DF25ull;
      x ^= x >> 32;
      y = (y + word) * 0xD6E8FEB86659FD93ull;
      y ^= y >> 29;
    }
    const Word128 both = (static_cast<Word128>(x) << 64) | y;
    return both == 0 ? 1 : both;
  }
  bool insert(Word128 h) {
    const std::size_t mask = table_.size() - 1;
    std::size_t i = static_cast<std::size_t>(h) & mask;
    for (; table_[i] != 0; i = (i + 1) & mask)
      if (table_[i] == h) return false;
    table_[i] = h;
    return true;
  }
  void grow() {
    std::vector<Word128> old(table_.size() * 2);
    old.swap(table_);
    for (const Word128 h : old)
      if (h != 0) insert(h);
  }

  std::vector<Word128> table_;
  std::size_t count_ = 0;
};

}  // namespace aliquot::wire::model
