// Quota: exact accounting of one GPU of a lease, shared by processes that may be killed anywhere.
//
// One 128-bit head per GPU names its last writer and what that one holds; one 128-bit mirror per
// process holds its bytes while the head names another. Rule: nobody replaces a head by one that
// names another slot before its `after` stands in mirror[slot]; anyone may put it there, and the
// sequence number in the mirror lets it be put there only once. So at every instant
//   bytes of slot s = head.slot == s ? head.after : mirror[s].bytes
// and used is their sum. A process alone on a GPU swaps the head and nothing else. There is no
// lock, no log and no per-thread state, hence nothing that a killed process could leave behind half
// done. Alternatives and figures: docs/adr/0010.
//
// Promise: used never passes the limit in force; a reserve is refused only if at one instant of the
// call used + bytes was above the limit; a thread run alone finishes within 15 shared accesses.
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
    return repeat(kTenantTries, tally, [&] { return try_to_reserve(slot, bytes, tally); });
  }

  // Gives back `bytes` of `slot`: a free, or the roll back of a failed driver call. Never below
  // zero, even over a scribbled ledger.
  Outcome release(unsigned slot, std::uint64_t bytes, Tally* tally = nullptr) const {
    return repeat(kTenantTries, tally, [&] { return try_to_release(slot, bytes, tally); });
  }

  // One try of the above; kBusy: another writer came first.
  Outcome try_to_reserve(unsigned slot, std::uint64_t bytes, Tally* tally = nullptr) const {
    const Pair seen = load_halves(*head_);
    // After the head: a limit stored before a bump is met by every reserve that follows it.
    const std::uint64_t limit = limit_->load(std::memory_order_acquire);
    const Head head = Head::unpack(seen);
    if (head.used > limit || bytes > limit - head.used)
      return compare_and_swap(*head_, seen, seen) ? Outcome::kRefused : Outcome::kBusy;
    std::uint64_t mine = 0;
    if (!turn_to(slot, seen, head, &mine, tally)) return Outcome::kBusy;
    return replace(seen, head.used + bytes, slot, mine + bytes);
  }
  Outcome try_to_release(unsigned slot, std::uint64_t bytes, Tally* tally = nullptr) const {
    const Pair seen = load_halves(*head_);
    const Head head = Head::unpack(seen);
    std::uint64_t mine = 0;
    if (!turn_to(slot, seen, head, &mine, tally)) return Outcome::kBusy;
    return replace(seen, less(head.used, bytes), slot, less(mine, bytes));
  }

  // Broker: the slot's process is dead (its pidfd says so). Subtracts what it held, exactly once
  // however often this is called and wherever an earlier caller died.
  Outcome reclaim(unsigned slot, unsigned tries = kBrokerTries) const {
    return repeat(tries, nullptr, [&] {
      const Pair seen = load_halves(*head_);
      const Head head = Head::unpack(seen);
      std::uint64_t its = load(cell(slot).mirror.lo);
      if (!Faults::kReclaimsUnsettled && !turn_to(slot, seen, head, &its, nullptr))
        return Outcome::kBusy;
      return its == 0 ? Outcome::kOk : replace(seen, less(head.used, its), slot, 0);
    });
  }

  // Broker: after storing a new limit. When this returns kOk every reserve that has not yet
  // happened must look at the limit again.
  Outcome bump(unsigned tries = kBrokerTries) const {
    return repeat(tries, nullptr, [&] {
      const Pair seen = load_halves(*head_);
      const Head head = Head::unpack(seen);
      const unsigned slot = in_range(head.slot);
      std::uint64_t its = 0;
      if (!turn_to(slot, seen, head, &its, nullptr)) return Outcome::kBusy;
      return replace(seen, head.used, slot, its);
    });
  }

  // Broker: the sum of what the slots hold against the head, at one instant. A difference means
  // that somebody wrote outside the protocol; the head is then rebuilt from the sum (kRefused). The
  // head is settled before, so that a later scribble over it loses what is newer than this alone.
  Outcome audit(unsigned tries = 64) const {
    return repeat(tries, nullptr, [&] {
      const Pair seen = load_halves(*head_);
      const Head head = Head::unpack(seen);
      const unsigned slot = in_range(head.slot);
      if (!settle(*head_, seen, cell(slot).mirror, nullptr)) return Outcome::kBusy;
      Word128 sum = 0;
      for (unsigned s = 0; s < slots_; ++s) sum += bytes_of(s, head);
      if (sum == head.used && slot == head.slot)
        return compare_and_swap(*head_, seen, seen) ? Outcome::kOk : Outcome::kBusy;
      const auto used = sum > kByteMask ? kByteMask : static_cast<std::uint64_t>(sum);
      const Outcome rebuilt = replace(seen, used, slot, bytes_of(slot, head));
      return rebuilt == Outcome::kOk ? Outcome::kRefused : rebuilt;
    });
  }

  // The total at this instant.
  std::uint64_t used() const { return load(head_->lo) & kByteMask; }

  // What a slot holds.
  std::uint64_t held_bytes(unsigned slot) const {
    return bytes_of(slot, Head::unpack(load_halves(*head_)));
  }

  // A statistic beside the account; `delta` may be negative. Nothing is written for linear memory,
  // which programs take and free most: it is what the other kinds leave.
  void count(unsigned slot, Kind kind, std::int64_t delta) const {
    if (kind != Kind::kLinear)
      counter(slot, kind).fetch_add(static_cast<std::uint64_t>(delta), std::memory_order_relaxed);
  }
  // Exact while the slot's process is quiet.
  std::uint64_t bytes_of_kind(unsigned slot, Kind kind) const {
    if (kind != Kind::kLinear) return counter(slot, kind).load(std::memory_order_relaxed);
    std::uint64_t rest = held_bytes(slot);
    for (unsigned other = 0; other < kKinds; ++other)
      if (Kind{other} != Kind::kLinear) rest = less(rest, bytes_of_kind(slot, Kind{other}));
    return rest;
  }

 private:
  Cell& cell(unsigned slot) const {
    return *reinterpret_cast<Cell*>(first_cell_ + slot * cell_stride_);
  }
  // What a slot holds as long as the head is `head`: no mirror but that of the head's own slot
  // changes meanwhile.
  std::uint64_t bytes_of(unsigned slot, const Head& head) const {
    return head.slot == slot ? head.after : load(cell(slot).mirror.lo);
  }
  std::atomic<std::uint64_t>& counter(unsigned slot, Kind kind) const {
    return cell(slot).kind_bytes[static_cast<unsigned>(kind)];
  }
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

  // Makes the head ready to be replaced by one of `slot`, and says what that slot holds. False:
  // another writer came first; so did one, unnoticed, if the caller's swap of the head fails.
  bool turn_to(unsigned slot, Pair seen, const Head& head, std::uint64_t* held,
               Tally* tally) const {
    if (head.slot != slot && !Faults::kSkipsHelp &&
        !settle(*head_, seen, cell(in_range(head.slot)).mirror, tally))
      return false;
    *held = bytes_of(slot, head);
    return true;
  }
  // False: the head is another by now, or somebody wrote the mirror; perhaps an earlier `after`,
  // because he came from an earlier head of the same slot.
  static bool settle(Pair& head, Pair seen, Pair& mirror, Tally* tally) {
    const Head last = Head::unpack(seen);
    const std::uint64_t tag = load(mirror.hi), bytes = load(mirror.lo);
    // The sequence alone would do but for a slot that wrote 2^34 heads in a row; the bytes alone
    // not at all, with somebody about to put an earlier `after` there.
    if ((tag & kSequenceMask) == last.sequence && bytes == last.after) return true;
    // Only while the head is still `seen` do (bytes, tag) belong to the time before it was settled.
    if (!compare_and_swap(head, seen, seen) ||
        !compare_and_swap(mirror, {bytes, tag}, {last.after, next_tag(tag, last.sequence)}))
      return false;
    if (tally != nullptr) tally->helped++;
    return true;
  }

  // One operation, which happens at the instant of the swap. `used` fits its bits, as it comes from
  // a head or is within the limit; `after` is larger only over a scribbled mirror.
  Outcome replace(Pair seen, std::uint64_t used, unsigned slot, std::uint64_t after) const {
    const std::uint64_t sequence = (Head::unpack(seen).sequence + 1) & kSequenceMask;
    const Pair next = Head{used, after & kByteMask, slot, sequence}.pack();
    return compare_and_swap(*head_, seen, next) ? Outcome::kOk : Outcome::kBusy;
  }

  template <class Try>
  static Outcome repeat(unsigned tries, Tally* tally, Try once) {
    for (; tries != 0; --tries) {
      const Outcome outcome = once();
      if (outcome != Outcome::kBusy) return outcome;
      if (tally != nullptr) tally->retries++;
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    }
    return Outcome::kBusy;
  }

  Pair* head_ = nullptr;
  const std::atomic<std::uint64_t>* limit_ = nullptr;
  char* first_cell_ = nullptr;  // of this GPU: slot 0's
  std::size_t cell_stride_ = 0;
  std::size_t slots_ = 0;
};

using Quota = BasicQuota<NoFaults>;

}  // namespace aliquot::wire
