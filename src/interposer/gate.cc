#include "interposer/gate.h"

#include "interposer/captures.h"
#include "interposer/gate_state.h"
#include "interposer/real_driver.h"

namespace aliquot::interposer {
namespace {

using gate::TenantGate;

// A host's patience, not a time of the machine: not slowed with it.
constexpr Nanoseconds kBroken = 3 * kSecond;
// Beside a competitor an event for so much work; less would cost more than it tells.
constexpr Nanoseconds kMarkEvery = 50 * kMicrosecond;
constexpr unsigned kMostDecisions = 8;  // a peer that changes the word for ever holds nobody up

std::uint32_t low_half(std::uint64_t word) { return static_cast<std::uint32_t>(word); }

// A word of 64 bits as the kernel's futex of its low half.
const std::atomic<std::uint32_t>& low_half_of(const std::atomic<std::uint64_t>& word) {
  return reinterpret_cast<const std::atomic<std::uint32_t>&>(word);  // little-endian, aligned
}

// What the other processes of the lease have in flight, and whether this window's one kernel is
// still to be had. Under the lock.
void read_others(GateState& state, const gate::Window& window, Nanoseconds now) {
  const wire::LedgerView& ledger = tenant().ledger();
  const auto slots = static_cast<unsigned>(state.line().gate[0].load(std::memory_order_relaxed));
  gate::OtherProcesses others;
  state.has_peers = false;
  for (unsigned slot = 0; slot < slots && slot < ledger.slots(); ++slot) {
    if (slot == tenant().slot()) continue;
    const wire::Cell& cell = ledger.cell(slot, state.gpu);
    gate::TenantReport report;
    if (cell.demand.load(std::memory_order_relaxed) == 0 ||
        !gate::read_report(cell.demand, cell.gate, report))
      continue;
    state.has_peers = true;
    others.add(report, now);
  }
  state.tenant.set_others(others);
  if (!window.open || !window.limited) return;
  std::atomic<std::uint64_t>& taken = state.line().gate[1];
  std::uint64_t before = taken.load(std::memory_order_relaxed);
  if (before == window.number || !taken.compare_exchange_strong(before, window.number))
    state.tenant.free_kernel_taken(window.number);
}

// Processes of a lease that wait for the same work to end decide at the same moment, and must not
// all launch: whoever finds that another one decided meanwhile looks again. Whoever dies here has
// held nobody up. Under the lock. `turn`: read before the others' reports were.
bool decides_first(GateState& state, std::uint64_t turn, bool free_kernel) {
  std::atomic<std::uint64_t>& turns = state.line().gate[2];
  publish(state);
  if (!free_kernel) return turns.compare_exchange_strong(turn, turn + 1);
  turns.fetch_add(1);  // nobody else may have it
  return true;
}

// Whether the broker is gone: no sign of life for long, neither from it nor in this window.
bool is_broken(GateState& state, Nanoseconds waiting_since, Nanoseconds now) {
  const std::uint64_t word = state.grant().window.load(std::memory_order_relaxed);
  const auto alive =
      static_cast<Nanoseconds>(state.grant().gate[3].load(std::memory_order_relaxed));
  const Nanoseconds sign = alive > 0 && alive < now ? alive : 0;
  if (now - sign < kBroken) {
    state.broken = false;
    return false;
  }
  // It had its three seconds when it was found broken; until something changes it stays so.
  if (state.broken && state.broken_word == word) return true;
  if (now - waiting_since < kBroken) return false;
  state.broken = true;
  state.broken_word = word;
  return true;
}

// At the closed gate, for a while. Under the lock, which is given up meanwhile.
void wait_at_gate(GateState& state, std::uint64_t seen) {
  state.tenant.wait_at_gate();
  publish(state);
  const bool first = state.tenant.report().waiting == 1;
  state.lock.unlock();
  if (first) tell_broker(state);
  const Nanoseconds began = monotonic_now();
  const Nanoseconds patience = state.tenant.options().ask_again;
  futex_wait(low_half_of(state.grant().window), low_half(seen), patience, true);
  const Nanoseconds waited = monotonic_now() - began;
  state.cell().waiting_ns.fetch_add(static_cast<std::uint64_t>(waited), std::memory_order_relaxed);
  // Whatever message was lost, the broker hears of it again.
  if (!first && waited >= patience) tell_broker(state);
  state.lock.lock();
  state.tenant.leave_gate();
}

// Until own work ends, or for `wait_ns`. Under the lock, which is given up meanwhile.
void wait_in_limiter(GateState& state, Nanoseconds wait_ns) {
  state.tenant.enter_launch();
  publish(state);
  const std::uint32_t ended = state.completions.load();
  state.in_limiter.fetch_add(1);
  state.lock.unlock();
  const Nanoseconds least = 5 * kMicrosecond;
  const Nanoseconds most = state.tenant.options().ask_again;
  const Nanoseconds time = wait_ns < least ? least : wait_ns < most ? wait_ns : most;
  kick_watch(state, monotonic_now() + time);
  futex_wait(state.completions, ended, time, false);
  state.in_limiter.fetch_sub(1);
  if (!capturing_anywhere()) look(state);
  state.lock.lock();
  state.tenant.leave_launch();
}

// A free event, or a new one where the driver may be asked for it. Gives the lock up meanwhile.
CUevent event_for(GateState& state, std::uint64_t context) {
  if (CUevent event = state.events.take(context)) return event;
  if (capturing_anywhere() || !state.events.may_make(context)) return nullptr;
  state.lock.unlock();
  CUevent event = nullptr;
  const CUresult result = real::cuEventCreate(&event, CU_EVENT_DEFAULT);
  state.lock.lock();
  if (result != CUDA_SUCCESS) return nullptr;
  state.events.made(context);
  return event;
}

}  // namespace

bool Passage::begin() {
  GateState* state = gate_state(gpu_);
  if (state == nullptr) return true;
  if (capturing_anywhere() && goes_into_graph(work_.stream)) {
    ungated_ = true;
    return true;
  }
  const Nanoseconds began = monotonic_now();
  state->lock.lock();
  state->tenant.set_online(state->is_online());
  for (unsigned decided = 0;;) {
    const std::uint64_t seen = state->grant().window.load(std::memory_order_acquire);
    window_ = window_of(*state);
    Nanoseconds now = monotonic_now();
    if (state->marks.count() != 0 && !window_.limited && !capturing_anywhere()) {
      state->lock.unlock();
      look(*state);
      state->lock.lock();
      now = monotonic_now();
    }
    const std::uint64_t turn = state->line().gate[2].load();
    read_others(*state, window_, now);
    const Nanoseconds unknown = state->tenant.options().unknown_kernel;
    const Nanoseconds assumed = work_.assumed_ns != 0 ? state->scaled(work_.assumed_ns) : unknown;
    estimate_ns_ = state->tenant.estimate(work_.key, assumed);
    const bool free_kernel = state->tenant.has_free_kernel(window_);
    const TenantGate::Verdict said = state->tenant.may_launch(now, window_, estimate_ns_);
    if (said.answer == TenantGate::Answer::kGo) {
      if (!state->has_peers || !window_.limited || decided++ == kMostDecisions ||
          decides_first(*state, turn, free_kernel))
        break;
      state->tenant.abandoned(estimate_ns_);
      publish(*state);
      continue;
    }
    if (said.answer == TenantGate::Answer::kLimiter) {
      wait_in_limiter(*state, said.wait_ns);
      continue;
    }
    if (is_broken(*state, began, now)) {
      state->cell().gate_refusals.fetch_add(1, std::memory_order_relaxed);
      state->lock.unlock();
      return false;
    }
    wait_at_gate(*state, seen);
  }
  state->tenant.enter_launch();
  if (window_.limited) publish(*state);
  mark_begin();
  state->lock.unlock();
  if (start_ != nullptr && real::cuEventRecord(start_, work_.stream) != CUDA_SUCCESS) {
    const Holding holding(state->lock);
    state->events.give(context_, start_);
    start_ = nullptr;
  }
  return true;
}

// Chooses how the end of this launch will be known. Under the lock.
void Passage::mark_begin() {
  GateState& state = *gate_state(gpu_);
  const Nanoseconds now = monotonic_now();
  if (window_.limited && state.marks.count() != 0 &&
      state.unmarked_estimate_ns + estimate_ns_ < state.scaled(kMarkEvery))
    return;
  CUcontext context = nullptr;
  if (real::cuCtxGetCurrent(&context) != CUDA_SUCCESS || context == nullptr) return;
  context_ = number_of(context);
  end_ = event_for(state, context_);
  if (end_ == nullptr || !state.tenant.wants_duration(now, window_, work_.key)) return;
  start_ = event_for(state, context_);
  if (start_ != nullptr) state.tenant.measures(now);
}

void Passage::end(CUresult result) {
  GateState* state = gate_state(gpu_);
  if (state == nullptr || ungated_) return;
  const bool marked = result == CUDA_SUCCESS && end_ != nullptr &&
                      real::cuEventRecord(end_, work_.stream) == CUDA_SUCCESS;
  const Nanoseconds now = monotonic_now();
  bool news = false;
  Nanoseconds look_at = 0;
  {
    const Holding holding(state->lock);
    state->tenant.leave_launch();
    if (result != CUDA_SUCCESS) {
      state->tenant.abandoned(estimate_ns_);
    } else {
      const Nanoseconds before = state->tenant.take_unmarked();
      const bool first = state->tenant.report().in_flight == 0;  // of this process
      news = state->tenant.launched(now, window_, work_.key, estimate_ns_ + before);
      // The device begins with it now, or when the tenant before is expected to be done.
      if (first) state->tenant.began(state->tenant.report().since);
      ++state->unmarked;
      state->unmarked_estimate_ns += estimate_ns_ + before;
      state->drained_told = state->silence_told = false;
    }
    if (marked && state->marks.add({.start = start_,
                                    .end = end_,
                                    .context = context_,
                                    .stream = work_.stream,
                                    .count = state->unmarked,
                                    .estimate_ns = state->unmarked_estimate_ns,
                                    .key = work_.key})) {
      state->unmarked = 0;
      state->unmarked_estimate_ns = 0;
    } else {
      state->events.give(context_, start_);
      state->events.give(context_, end_);
    }
    publish(*state);
    look_at = next_look(*state, window_, now);
  }
  state->quick.store(true, std::memory_order_relaxed);
  if (news) tell_broker(*state);
  ensure_watch(*state);
  kick_watch(*state, look_at);
}

void gate_forget_context(std::uint64_t context) {
  for (unsigned gpu = 0; context != 0 && gpu < wire::kMaxGpus; ++gpu) {
    if (quick_gates[gpu].load(std::memory_order_acquire) == nullptr) continue;
    GateState& state = *gate_state(gpu);
    const Holding looking(state.looking);
    state.lock.lock();
    for (Mark mark = state.marks.take_any_of(context); mark.id != 0;
         mark = state.marks.take_any_of(context)) {
      state.tenant.completed(monotonic_now(), mark.count, mark.estimate_ns);
      state.events.give(context, mark.start);
      state.events.give(context, mark.end);
    }
    // The context may live on: others hold it too.
    while (CUevent event = state.events.take_last(context)) {
      state.lock.unlock();
      real::cuEventDestroy_v2(event);
      state.lock.lock();
    }
    publish(state);
    state.lock.unlock();
  }
}

}  // namespace aliquot::interposer
