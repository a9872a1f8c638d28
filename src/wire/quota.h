// Quota: exact accounting of one GPU of a lease, shared by processes that may be killed anywhere.
//
// One 128-bit head per GPU names its last writer; one 128-bit mirror per process holds its bytes.
// Rule: nobody replaces a head before its `after` stands in mirror[slot]; anyone may put it there,
// and the sequence number in the mirror lets it be put there only once. So at every instant
//   bytes of slot s = head.slot == s and mirror[s].sequence != head.sequence ? head.after
//                                                                            : mirror[s].bytes
// and used is their sum. There is no lock, no log and no per-thread state, hence nothing that a
// killed process could leave behind half done. Alternatives and figures: docs/adr/0010.
//
// Promise: used never passes the limit in force; a reserve is refused only if at one instant of the
// call used + bytes was above the limit; a thread run alone finishes within 17 shared accesses.
// Every call is bounded by its tries, so a hostile writer cannot hold anyone (Outcome::kBusy).
// Any thread of any process. No allocation, no exceptions, no libstdc++ at run time.
#pragma once

#include <cstdint>

#include "wire/grant.h"
#include "wire/ledger.h"

namespace aliquot::wire {

enum class Outcome {
  kOk,
  kRefused,  // reserve: above the limit at one instant; audit: was scribbled on, now rebuilt
  kBusy,     // tries used up: only a writer outside the protocol does that to a tenant
};

// What operations met, added up; for tests and benchmarks.
struct Tally {
  std::uint32_t retries = 0, helped = 0;
};

// Faults that tests plant in the real code, to see that they are found.
struct NoFaults {
  static constexpr bool kSkipsHelp = false;
  static constexpr bool kReclaimsUnsettled = false;
};

inline constexpr unsigned kTenantTries = 1u << 20;
inline constexpr unsigned kBrokerTries = 4096;

template <class Faults>
class BasicQuota {
 public:
  constexpr BasicQuota() = default;  // of nothing: to be replaced before use
  BasicQuota(LedgerView ledger, const Grant& grant, unsigned gpu)
      : head_(&ledger.gpu(gpu).head),
        limit_(&grant.gpu[gpu].memory_limit_bytes),
        first_cell_(reinterpret_cast<char*>(&ledger.cell(0, gpu))),
        cell_stride_(ledger.gpus() * sizeof(Cell)),
        slots_(ledger.slots()) {}

  // The same account kept without a limit (an observed lease).
  BasicQuota without_limit() const {
    static constexpr std::atomic<std::uint64_t> kNone{kUnlimitedBytes};
    BasicQuota other = *this;
    other.limit_ = &kNone;
    return other;
  }

  // Takes `bytes` for `slot`, or says that at one instant of this call they were too many.
  Outcome reserve(unsigned slot, std::uint64_t bytes, Tally* tally = nullptr) const {
    for (unsigned tries = kTenantTries; tries != 0; --tries) {
      const Outcome outcome = try_to_reserve(slot, bytes, tally);
      if (outcome != Outcome::kBusy) return outcome;
      again(tally);
    }
    return Outcome::kBusy;
  }

  // Gives back `bytes` of `slot`: a free, or the roll back of a failed driver call. Never below
  // zero, even over a scribbled ledger.
  Outcome release(unsigned slot, std::uint64_t bytes, Tally* tally = nullptr) const {
    for (unsigned tries = kTenantTries; tries != 0; --tries) {
      if (try_to_release(slot, bytes, tally)) return Outcome::kOk;
      again(tally);
    }
    return Outcome::kBusy;
  }

  // One try of the above; kBusy and false: another writer came first.
  Outcome try_to_reserve(unsigned slot, std::uint64_t bytes, Tally* tally = nullptr) const {
    const Pair seen = settled_head_for(slot, tally);
    // After the head: a limit stored before a bump is met by every reserve that follows it.
    const std::uint64_t limit = limit_->load(std::memory_order_acquire);
    const std::uint64_t used = Head::unpack(seen).used;
    if (used > limit || bytes > limit - used)
      return compare_and_swap(*head_, seen, seen) ? Outcome::kRefused : Outcome::kBusy;
    const Pair mine = mirror_of(slot);
    return replace(seen, slot, mine, used + bytes, mine.lo + bytes) ? Outcome::kOk : Outcome::kBusy;
  }
  bool try_to_release(unsigned slot, std::uint64_t bytes, Tally* tally = nullptr) const {
    const Pair seen = settled_head_for(slot, tally);
    const Pair mine = mirror_of(slot);
    return replace(seen, slot, mine, less(Head::unpack(seen).used, bytes), less(mine.lo, bytes));
  }

  // Broker: the slot's process is dead (its pidfd says so). Subtracts what it held, exactly once
  // however often this is called and wherever an earlier caller died.
  Outcome reclaim(unsigned slot, unsigned tries = kBrokerTries) const {
    for (; tries != 0; --tries) {
      const Pair seen = Faults::kReclaimsUnsettled ? load_halves(*head_) : settled_head(nullptr);
      const Pair its = mirror_of(slot);
      if (its.lo == 0) return Outcome::kOk;
      if (replace(seen, slot, its, less(Head::unpack(seen).used, its.lo), 0)) return Outcome::kOk;
      again(nullptr);
    }
    return Outcome::kBusy;
  }

  // Broker: after storing a new limit. When this returns kOk every reserve that has not yet
  // happened must look at the limit again.
  Outcome bump(unsigned tries = kBrokerTries) const {
    for (; tries != 0; --tries) {
      const Pair seen = settled_head(nullptr);
      const Head head = Head::unpack(seen);
      const unsigned slot = in_range(head.slot);
      const Pair its = mirror_of(slot);
      if (replace(seen, slot, its, head.used, its.lo)) return Outcome::kOk;
      again(nullptr);
    }
    return Outcome::kBusy;
  }

  // Broker: the sum of the mirrors against the head, at one instant. A difference means that
  // somebody wrote outside the protocol; the head is then rebuilt from the mirrors (kRefused).
  Outcome audit(unsigned tries = 64) const {
    for (; tries != 0; --tries) {
      const Pair seen = settled_head(nullptr);
      const Head head = Head::unpack(seen);
      const unsigned slot = in_range(head.slot);
      Word128 sum = 0;
      for (unsigned s = 0; s < slots_; ++s) sum += load(cell(s).mirror.lo);
      if (sum == head.used && slot == head.slot) {
        if (compare_and_swap(*head_, seen, seen)) return Outcome::kOk;
      } else {
        const Pair its = mirror_of(slot);
        const auto used = sum > kByteMask ? kByteMask : static_cast<std::uint64_t>(sum);
        if (replace(seen, slot, its, used, its.lo)) return Outcome::kRefused;
      }
    }
    return Outcome::kBusy;
  }

  // The total at this instant.
  std::uint64_t used() const { return load(head_->lo) & kByteMask; }

  // What a slot holds, its unsettled last operation included. Exact when nobody writes meanwhile.
  std::uint64_t held_bytes(unsigned slot) const {
    const Head head = Head::unpack(load_halves(*head_));
    const Pair& mirror = cell(slot).mirror;
    if (in_range(head.slot) == slot && (load(mirror.hi) & kSequenceMask) != head.sequence)
      return head.after;
    return load(mirror.lo);
  }

  // A statistic beside the account; `delta` may be negative.
  void count(unsigned slot, Kind kind, std::int64_t delta) const {
    cell(slot).kind_bytes[static_cast<unsigned>(kind)].fetch_add(static_cast<std::uint64_t>(delta),
                                                                 std::memory_order_relaxed);
  }

 private:
  Cell& cell(unsigned slot) const {
    return *reinterpret_cast<Cell*>(first_cell_ + slot * cell_stride_);
  }
  // The mirror's halves; they belong together and to the settled head `seen`, or else the swap of
  // `seen` that follows fails.
  Pair mirror_of(unsigned slot) const { return load_halves(cell(slot).mirror); }
  // A scribbled head may name a slot that this ledger does not have.
  unsigned in_range(std::uint64_t slot) const {
    return static_cast<unsigned>(slot < slots_ ? slot : slot % slots_);
  }
  static std::uint64_t less(std::uint64_t from, std::uint64_t bytes) {
    std::uint64_t rest = 0;
    return __builtin_sub_overflow(from, bytes, &rest) ? 0 : rest;
  }
  // A mirror's upper half: a count that makes equal bytes and sequence differ, and the sequence.
  static std::uint64_t next_tag(std::uint64_t tag, std::uint64_t sequence) {
    return ((tag | kSequenceMask) + 1) | (sequence & kSequenceMask);  // the + 1 carries into it
  }

  // A head whose `after` is in its mirror: put there by us if its writer has not come to it.
  Pair settled_head(Tally* tally) const {
    const Pair seen = load_halves(*head_);
    settle_if_needed(seen, cell(in_range(Head::unpack(seen).slot)).mirror, tally);
    return seen;  // if it is torn or overtaken, the caller's swap of it will fail
  }
  // The same for whoever writes `slot` next: alone on a GPU it was the last writer too, and its
  // mirror need not be found twice.
  Pair settled_head_for(unsigned slot, Tally* tally) const {
    const Pair seen = load_halves(*head_);
    const std::uint64_t last = Head::unpack(seen).slot;
    settle_if_needed(seen, cell(last == slot ? slot : in_range(last)).mirror, tally);
    return seen;
  }
  void settle_if_needed(Pair seen, Pair& mirror, Tally* tally) const {
    if (Faults::kSkipsHelp) return;
    const std::uint64_t tag = load(mirror.hi);
    if ((tag & kSequenceMask) != Head::unpack(seen).sequence) [[unlikely]]
      settle(*head_, seen, mirror, tag, tally);
  }
  static void settle(Pair& head, Pair seen, Pair& mirror, std::uint64_t tag, Tally* tally) {
    const Head last = Head::unpack(seen);
    const std::uint64_t bytes = load(mirror.lo);
    // Only while the head is still `seen` do (bytes, tag) belong to the time before its operation.
    if (compare_and_swap(head, seen, seen) &&
        compare_and_swap(mirror, {bytes, tag}, {last.after, next_tag(tag, last.sequence)}) &&
        tally != nullptr)
      tally->helped++;
  }

  // One operation, on a slot whose mirror is `before`; the first compare-and-swap is the instant at
  // which it happens. `used` fits its bits, as it comes from a head or is within the limit.
  bool replace(Pair seen, unsigned slot, Pair before, std::uint64_t used,
               std::uint64_t after) const {
    const std::uint64_t sequence = (Head::unpack(seen).sequence + 1) & kSequenceMask;
    after &= kByteMask;  // larger only over a scribbled mirror
    if (!compare_and_swap(*head_, seen, Head{used, after, slot, sequence}.pack())) return false;
    // Fails if somebody has helped.
    compare_and_swap(cell(slot).mirror, before, {after, next_tag(before.hi, sequence)});
    return true;
  }

  static void again(Tally* tally) {
    if (tally != nullptr) tally->retries++;
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }

  Pair* head_ = nullptr;
  const std::atomic<std::uint64_t>* limit_ = nullptr;
  char* first_cell_ = nullptr;  // of this GPU: slot 0's
  std::size_t cell_stride_ = 0;
  std::size_t slots_ = 0;
};

using Quota = BasicQuota<NoFaults>;

}  // namespace aliquot::wire
