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
  BasicQuota(LedgerView ledger, const Grant& grant, unsigned gpu)
      : ledger_(ledger), limit_(grant.gpu[gpu].memory_limit_bytes), gpu_(gpu) {}

  // Takes `bytes` for `slot`, or says that at one instant of this call they were too many.
  Outcome reserve(unsigned slot, std::uint64_t bytes, Tally* tally = nullptr) const {
    for (unsigned tries = kTenantTries; tries != 0; --tries) {
      const Pair seen = settled_head(tally);
      // After the head: a limit stored before a bump is met by every reserve that follows it.
      std::uint64_t limit = limit_.load(std::memory_order_acquire);
      if (limit > kByteMask) limit = kByteMask;
      const Head head = Head::unpack(seen);
      if (bytes > limit || head.used > limit - bytes) {
        if (compare_and_swap(this->head(), seen, seen)) return Outcome::kRefused;
      } else if (replace(seen, slot, head.used + bytes, slot_bytes(slot) + bytes)) {
        return Outcome::kOk;
      }
      again(tally);
    }
    return Outcome::kBusy;
  }

  // Gives back `bytes` of `slot`: a free, or the roll back of a failed driver call. Never below
  // zero, even over a scribbled ledger.
  Outcome release(unsigned slot, std::uint64_t bytes, Tally* tally = nullptr) const {
    for (unsigned tries = kTenantTries; tries != 0; --tries) {
      const Pair seen = settled_head(tally);
      const std::uint64_t mine = slot_bytes(slot);
      if (replace(seen, slot, less(Head::unpack(seen).used, bytes), less(mine, bytes)))
        return Outcome::kOk;
      again(tally);
    }
    return Outcome::kBusy;
  }

  // Broker: the slot's process is dead (its pidfd says so). Subtracts what it held, exactly once
  // however often this is called and wherever an earlier caller died.
  Outcome reclaim(unsigned slot, unsigned tries = kBrokerTries) const {
    for (; tries != 0; --tries) {
      const Pair seen = Faults::kReclaimsUnsettled ? load_halves(head()) : settled_head(nullptr);
      const std::uint64_t bytes = slot_bytes(slot);
      if (bytes == 0) return Outcome::kOk;
      if (replace(seen, slot, less(Head::unpack(seen).used, bytes), 0)) return Outcome::kOk;
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
      if (replace(seen, slot, head.used, slot_bytes(slot))) return Outcome::kOk;
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
      for (unsigned s = 0; s < ledger_.slots(); ++s) sum += slot_bytes(s);
      if (sum == head.used && slot == head.slot) {
        if (compare_and_swap(this->head(), seen, seen)) return Outcome::kOk;
      } else if (replace(seen, slot, sum > kByteMask ? kByteMask : static_cast<std::uint64_t>(sum),
                         slot_bytes(slot))) {
        return Outcome::kRefused;
      }
    }
    return Outcome::kBusy;
  }

  // The total at this instant.
  std::uint64_t used() const { return load(head().lo) & kByteMask; }

  // What a slot holds, its unsettled last operation included. Exact when nobody writes meanwhile.
  std::uint64_t held_bytes(unsigned slot) const {
    const Head head = Head::unpack(load_halves(this->head()));
    const Pair& mirror = ledger_.cell(slot, gpu_).mirror;
    if (in_range(head.slot) == slot && (load(mirror.hi) & kSequenceMask) != head.sequence)
      return head.after;
    return load(mirror.lo);
  }

  // A statistic beside the account; `delta` may be negative.
  void count(unsigned slot, Kind kind, std::int64_t delta) const {
    ledger_.cell(slot, gpu_)
        .kind_bytes[static_cast<unsigned>(kind)]
        .fetch_add(static_cast<std::uint64_t>(delta), std::memory_order_relaxed);
  }

 private:
  Pair& head() const { return ledger_.gpu(gpu_).head; }
  std::uint64_t slot_bytes(unsigned slot) const { return load(ledger_.cell(slot, gpu_).mirror.lo); }
  // A scribbled head may name a slot that this ledger does not have.
  unsigned in_range(std::uint64_t slot) const {
    return static_cast<unsigned>(slot < ledger_.slots() ? slot : slot % ledger_.slots());
  }
  static std::uint64_t less(std::uint64_t from, std::uint64_t bytes) {
    return from > bytes ? from - bytes : 0;
  }
  // A mirror's upper half: a count that makes equal bytes and sequence differ, and the sequence.
  static std::uint64_t next_tag(std::uint64_t tag, std::uint64_t sequence) {
    return ((tag & ~kSequenceMask) + (1ull << kSequenceBits)) | (sequence & kSequenceMask);
  }

  // A head whose `after` is in its mirror: put there by us if its writer has not come to it.
  Pair settled_head(Tally* tally) const {
    const Pair seen = load_halves(head());
    if (Faults::kSkipsHelp) return seen;
    const Head last = Head::unpack(seen);
    Pair& mirror = ledger_.cell(in_range(last.slot), gpu_).mirror;
    const std::uint64_t tag = load(mirror.hi);
    if ((tag & kSequenceMask) == last.sequence) return seen;  // torn: the caller's CAS will fail
    const std::uint64_t bytes = load(mirror.lo);
    // Only while the head is still `seen` do (bytes, tag) belong to the time before its operation.
    if (compare_and_swap(head(), seen, seen) &&
        compare_and_swap(mirror, {bytes, tag}, {last.after, next_tag(tag, last.sequence)}) &&
        tally != nullptr)
      tally->helped++;
    return seen;
  }

  // One operation; the first compare-and-swap is the instant at which it happens.
  bool replace(Pair seen, unsigned slot, std::uint64_t used, std::uint64_t after) const {
    Pair& mirror = ledger_.cell(slot, gpu_).mirror;
    const Pair before = load_halves(mirror);  // stable as long as the head is `seen`
    const std::uint64_t sequence = (Head::unpack(seen).sequence + 1) & kSequenceMask;
    used &= kByteMask;  // larger only over a scribbled mirror
    after &= kByteMask;
    if (!compare_and_swap(head(), seen, Head{used, after, slot, sequence}.pack())) return false;
    compare_and_swap(mirror, before, {after, next_tag(before.hi, sequence)});  // fails if helped
    return true;
  }

  static void again(Tally* tally) {
    if (tally != nullptr) tally->retries++;
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }

  LedgerView ledger_;
  const std::atomic<std::uint64_t>& limit_;
  unsigned gpu_;
};

using Quota = BasicQuota<NoFaults>;

}  // namespace aliquot::wire
