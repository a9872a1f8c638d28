#include "wire/quota_model.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "wire/quota_model_state.h"

namespace aliquot::wire::model {
namespace {

using Byte = std::uint8_t;

struct Violation : std::runtime_error {
  using std::runtime_error::runtime_error;
};
[[noreturn]] void fail(const char* what) { throw Violation(what); }

// One exploration: the plan, the states seen, the states to go on from.
class Explorer {
 public:
  explicit Explorer(const Plan& plan) : plan_(plan) {}

  Report run() {
    try {
      visit(start());
      while (!open_.empty()) {
        const State state = open_.back();
        open_.pop_back();
        ++report_.states;
        if (plan_.check_alone) check_alone(state);
        if (!expand(state)) check_rest(state);
      }
    } catch (const Violation& violation) {
      report_.violation = violation.what();
    }
    return report_;
  }

 private:
  bool has(Fault fault) const { return plan_.fault == fault; }

  State start() const {
    State s;
    std::memset(&s, 0, sizeof s);
    s.limit = s.in_force = plan_.limit;
    for (const ThreadPlan& t : plan_.threads) {
      s.table[t.process] = static_cast<Byte>(t.process + 1);
      s.alive |= static_cast<Byte>(1u << t.process);
    }
    return s;
  }

  // All that may happen next. False: nothing.
  bool expand(const State& state) {
    bool moved = false;
    for (std::size_t t = 0; t < plan_.threads.size(); ++t) {
      State next = state;
      if (step_thread(next, t, false)) moved = true, visit(next);
      if (operation(state, t).what == Do::kReserveFailing && state.thread[t].rolling_back == 0 &&
          state.thread[t].at == At::kSwapHead) {
        next = state;
        if (step_thread(next, t, true)) visit(next);
      }
    }
    State next = state;
    if (step_broker(next)) moved = true, visit(next);
    if (state.kills < plan_.kills)
      for (Byte p = 0; p < kProcesses; ++p)
        if (is_alive(state, p)) moved = true, visit(killed(state, p));
    if (state.broker_kills < plan_.broker_kills) moved = true, visit(with_new_broker(state));
    return moved;
  }

  State killed(State s, Byte process) const {
    s.alive &= static_cast<Byte>(~(1u << process));
    s.kills++;
    reset_threads(s, process);
    return s;
  }
  void reset_threads(State& s, Byte process) const {
    for (std::size_t t = 0; t < plan_.threads.size(); ++t)
      if (plan_.threads[t].process == process) std::memset(&s.thread[t], 0, sizeof(Thread));
  }
  // The next broker bumps first, then looks through its table.
  State with_new_broker(State s) const {
    std::memset(&s.broker, 0, sizeof s.broker);
    s.broker_kills++;
    const bool bumps = !has(Fault::kSeparateCounter) && !has(Fault::kLimitWithoutBump);
    s.broker_slot = bumps ? kBumping : Byte{0};
    s.broker.at = bumps ? At::kReadLow : At::kIdle;
    return s;
  }

  Operation operation(const State& s, std::size_t t) const {
    const auto& all = plan_.threads[t].operations;
    return s.thread[t].next < all.size() ? all[s.thread[t].next] : Operation{};
  }
  static void finish(Thread& t) {
    t.next++;
    t.at = At::kIdle;
    t.rolling_back = 0;
    forget_all(t);
  }

  // R1. False: the thread is past it.
  static bool read_step(const State& s, Thread& t) {
    if (t.at == At::kReadLow) {
      t.used = s.used, t.sequence = s.sequence;
      t.at = At::kReadHigh;
      return true;
    }
    if (t.at != At::kReadHigh) return false;
    t.after = s.after, t.slot = s.slot;
    t.at = At::kDecide;
    return true;
  }
  // Where R4 begins: a head of the own slot says what the slot holds.
  void turn_to(Thread& t, Byte slot) const {
    if (t.slot == slot) t.bytes = t.after;
    t.at = t.slot == slot ? At::kSwapHead : has(Fault::kNoHelp) ? At::kReadOwn : At::kReadTag;
  }
  // R4, R5. False: the thread is past them.
  bool settle_step(State& s, Thread& t, Byte slot) const {
    switch (t.at) {
      case At::kReadTag:
        t.tag = s.tag[t.slot];
        t.at = At::kReadBytes;
        return true;
      case At::kReadBytes:
        t.bytes = s.bytes[t.slot];
        t.at = is_settled(t)                       ? At::kReadOwn
               : has(Fault::kNoIdentityBeforeHelp) ? At::kHelp
                                                   : At::kProveHead;
        return true;
      case At::kProveHead:
        t.at = head_is(s, t) ? At::kHelp : At::kReadLow;
        return true;
      case At::kHelp:
        t.at = swap_mirror(s, t) || has(Fault::kLostHelpIsDone) ? At::kReadOwn : At::kReadLow;
        return true;
      case At::kReadOwn:
        t.bytes = s.bytes[slot];
        t.at = At::kSwapHead;
        return true;
      default:
        return false;
    }
  }
  bool is_settled(const Thread& t) const {
    return t.bytes == t.after && (t.tag == t.sequence || has(Fault::kSettledByBytesAlone));
  }

  bool swap_mirror(State& s, const Thread& t) const {
    if (s.bytes[t.slot] != t.bytes) return false;
    if (!has(Fault::kNoSequenceInMirror) && s.tag[t.slot] != t.tag) return false;
    s.bytes[t.slot] = t.after;
    s.tag[t.slot] = t.sequence;
    return true;
  }

  enum class Change { kReserve, kRelease, kReclaim, kBump };

  // R6. Ends at kDone, or at kReadLow where somebody came first.
  void replace_step(State& s, Thread& t, Byte slot, Change change, Byte n) const {
    int delta = change == Change::kReserve ? n : change == Change::kRelease ? -int{n} : 0;
    if (change == Change::kReclaim) delta = -int{t.bytes};
    if (!head_is(s, t)) {
      t.at = At::kReadLow;
      return;
    }
    if (int{t.used} + delta < 0 || int{t.bytes} + delta < 0) fail("underflow");
    s.used = static_cast<Byte>(t.used + delta);
    s.after = static_cast<Byte>(t.bytes + delta);
    s.slot = slot;
    s.sequence = static_cast<Byte>(t.sequence + 1);
    s.held[slot] = change == Change::kReclaim ? Byte{0} : static_cast<Byte>(s.held[slot] + delta);
    if (change == Change::kReserve && s.used > s.in_force) fail("above the limit in force");
    if (change == Change::kBump && s.lowered == 1) s.lowered = 2, s.in_force = s.limit;
    t.at = At::kDone;
  }

  bool step_thread(State& s, std::size_t index, bool driver_fails) const {
    Thread& t = s.thread[index];
    const Byte process = plan_.threads[index].process;
    const Operation o = operation(s, index);
    if (!is_alive(s, process) || o.what == Do::kNothing) return false;
    const int slot = slot_of(s, process);
    if (slot < 0) fail("a living process without a slot");
    const bool freeing = o.what == Do::kFreeLast || t.rolling_back != 0;
    if (t.at == At::kIdle) {
      if (o.what == Do::kFreeLast && t.held_count == 0)
        finish(t);
      else
        t.at = At::kReadLow;
      return true;
    }
    const Byte n = freeing && t.rolling_back == 0 ? t.held[t.held_count - 1] : o.bytes;
    operate(s, t, static_cast<Byte>(slot), freeing, n);
    if (t.at == At::kDone) complete(t, o, freeing, n, driver_fails);
    return true;
  }

  void operate(State& s, Thread& t, Byte slot, bool freeing, Byte n) const {
    if (has(Fault::kSeparateCounter)) return step_counter(s, t, slot, freeing, n);
    if (read_step(s, t) || settle_step(s, t, slot)) return;
    if (t.at == At::kDecide) {  // R2
      t.limit = freeing ? Byte{0} : s.limit;
      if (!freeing && t.used + n > t.limit)
        t.at = At::kRefuse;
      else
        turn_to(t, slot);
    } else if (t.at == At::kRefuse) {  // R3
      if (!head_is(s, t)) {
        t.at = At::kReadLow;
        return;
      }
      if (s.used + n <= t.limit) fail("false refusal");
      finish(t);
    } else {
      replace_step(s, t, slot, freeing ? Change::kRelease : Change::kReserve, n);
    }
  }

  static void complete(Thread& t, Operation o, bool freeing, Byte n, bool driver_fails) {
    if (!freeing && o.what == Do::kReserveFailing && driver_fails) {
      t.rolling_back = 1;
      t.at = At::kReadLow;
      forget_all(t);
      return;
    }
    if (!freeing)
      t.held[t.held_count++] = n;
    else if (t.rolling_back == 0)
      t.held[--t.held_count] = 0;
    finish(t);
  }

  // Fault kSeparateCounter: compare-and-swap on a counter, then the mirror.
  void step_counter(State& s, Thread& t, Byte slot, bool freeing, Byte n) const {
    const int delta = freeing ? -int{n} : int{n};
    if (t.at == At::kReadLow) {
      t.used = s.used;
      t.at = At::kSwapHead;
    } else if (t.at == At::kSwapHead) {
      if (!freeing && t.used + n > s.limit) return finish(t);
      t.at = s.used == t.used ? At::kHelp : At::kReadLow;
      if (t.at == At::kReadLow) return;
      s.used = static_cast<Byte>(t.used + delta);
      s.held[slot] = static_cast<Byte>(s.held[slot] + delta);
    } else {
      s.bytes[slot] = static_cast<Byte>(s.bytes[slot] + delta);
      t.at = At::kDone;
    }
  }

  bool step_broker(State& s) const {
    if (s.broker.at == At::kIdle) return begin_broker_work(s);
    const bool bumping = s.broker_slot == kBumping;
    Thread& b = s.broker;
    const Byte slot = bumping ? b.slot : s.broker_slot;
    if (b.at == At::kFreeSlot) {
      if (s.held[slot] != 0) fail("a slot is freed, its bytes are still counted");
      s.table[slot] = 0;
      return end_broker_work(s);
    }
    if (has(Fault::kSeparateCounter)) return step_broker_counter(s, slot);
    if (read_step(s, b) || settle_step(s, b, slot)) return true;
    if (b.at == At::kDecide) {
      if (has(Fault::kReclaimUnsettled) && !bumping)
        b.at = At::kReadOwn;
      else
        turn_to(b, slot);
      return true;
    }
    if (!bumping && b.bytes == 0) {
      b.at = At::kFreeSlot;
      return true;
    }
    replace_step(s, b, slot, bumping ? Change::kBump : Change::kReclaim, 0);
    if (b.at != At::kDone) return true;
    if (bumping) return end_broker_work(s);
    b.at = At::kFreeSlot;
    return true;
  }
  static bool end_broker_work(State& s) {
    std::memset(&s.broker, 0, sizeof s.broker);
    s.broker_slot = 0;
    return true;
  }
  static bool step_broker_counter(State& s, Byte slot) {
    Thread& b = s.broker;
    if (b.at == At::kReadLow) {
      b.bytes = s.bytes[slot];
      b.at = At::kSwapHead;
    } else if (b.at == At::kSwapHead) {
      if (s.used < b.bytes) fail("underflow");
      s.used = static_cast<Byte>(s.used - b.bytes);
      s.held[slot] = 0;
      b.at = At::kHelp;
    } else {
      s.bytes[slot] = 0;
      b.at = At::kFreeSlot;
    }
    return true;
  }

  // The dead first, then a new limit, then processes that come again.
  bool begin_broker_work(State& s) const {
    for (Byte slot = 0; slot < kSlots; ++slot) {
      if (s.table[slot] == 0 || is_alive(s, static_cast<Byte>(s.table[slot] - 1))) continue;
      s.broker_slot = slot;
      s.broker.at = At::kReadLow;
      if (has(Fault::kFreedBeforeSubtracted)) s.table[slot] = 0;
      return true;
    }
    if (s.lowered == 0 && plan_.lowered_to != 0) {
      s.limit = plan_.lowered_to;
      s.lowered = 1;
      if (has(Fault::kLimitWithoutBump)) {
        s.lowered = 2, s.in_force = s.limit;
        return true;
      }
      s.broker_slot = kBumping;
      s.broker.at = At::kReadLow;
      return true;
    }
    return s.respawns < plan_.respawns && respawn(s);
  }
  bool respawn(State& s) const {
    for (const ThreadPlan& plan : plan_.threads) {
      const Byte p = plan.process;
      if (is_alive(s, p) || slot_of(s, p) >= 0) continue;
      Byte slot = 0;
      while (s.table[slot] != 0) ++slot;
      if (effective_bytes(s, slot) != 0) fail("a slot is given out with bytes in it");
      s.table[slot] = static_cast<Byte>(p + 1);
      s.alive |= static_cast<Byte>(1u << p);
      s.respawns++;
      reset_threads(s, p);
      return true;
    }
    return false;
  }

  void check(const State& s) const {
    int held = 0, effective = 0;
    for (Byte slot = 0; slot < kSlots; ++slot) {
      held += s.held[slot];
      if (has(Fault::kSeparateCounter)) continue;
      effective += effective_bytes(s, slot);
      if (effective_bytes(s, slot) != s.held[slot]) fail("a slot's bytes are not what is held");
    }
    if (held != s.used) fail("used is not the sum of what is held");
    if (!has(Fault::kSeparateCounter) && effective != s.used) fail("used is not the sum of slots");
  }
  void check_rest(const State& s) {
    ++report_.ends;
    int held = 0;
    for (std::size_t t = 0; t < plan_.threads.size(); ++t)
      if (is_alive(s, plan_.threads[t].process))
        for (const Byte bytes : s.thread[t].held) held += bytes;
    if (held != s.used) fail("at rest, used is not what the living hold");
    for (Byte slot = 0; slot < kSlots; ++slot)
      if (s.table[slot] == 0 &&
          (has(Fault::kSeparateCounter) ? s.bytes[slot] : effective_bytes(s, slot)) != 0)
        fail("at rest, bytes in a free slot");
  }
  void check_alone(const State& state) {
    for (std::size_t t = 0; t < plan_.threads.size(); ++t) {
      State s = state;
      int steps = 0;
      while (s.thread[t].next == state.thread[t].next && step_thread(s, t, false))
        if (++steps > 40) fail("a thread cannot finish alone");
      report_.longest_alone = std::max(report_.longest_alone, steps);
    }
    State s = state;
    s.respawns = 255;
    for (int steps = 0; step_broker(s); ++steps)
      if (steps > 120) fail("the broker cannot finish alone");
  }

  void visit(State state) {
    ++report_.transitions;
    check(state);
    if (!has(Fault::kSeparateCounter)) {
      for (Thread& t : state.thread) forget_unread(t);
      forget_unread(state.broker);
    }
    if (seen_.add(state)) open_.push_back(state);
  }

  Plan plan_;
  Report report_;
  StateSet seen_;
  std::vector<State> open_;
};

}  // namespace

Report explore(const Plan& plan) { return Explorer(plan).run(); }

}  // namespace aliquot::wire::model
