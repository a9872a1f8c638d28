// The watcher: one thread a GPU that sees work end, and tells the broker of it, while the program's
// own threads are elsewhere. It starts with the first work that has an event, sleeps until that
// should have ended, or, where nothing is in flight, until it is kicked.
//
// The thread takes no signal, asks the driver only about events, and is out of the driver before
// the program's exit goes on. pthread_create is found at run time: what the program has is called
// (a sanitizer's, say); where it has no threads, a loaded driver has brought them along.
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

#include "interposer/gate_state.h"
#include "interposer/inside.h"
#include "interposer/lookups.h"
#include "interposer/real_driver.h"

namespace aliquot::interposer {
namespace {

constexpr Nanoseconds kLeastSleep = 25 * kMicrosecond;
constexpr Nanoseconds kMostSleepContended = 500 * kMicrosecond;
constexpr Nanoseconds kLeastSleepPrecise = 50 * kMicrosecond;
constexpr Nanoseconds kLooksToTheEnd = 8;  // in each of them an eighth of what is left passes
constexpr unsigned kMostDoublings = 3;  // of the least sleep, while work is later than was foretold
constexpr Nanoseconds kLeastSleepAlone = 1 * kMillisecond;
constexpr Nanoseconds kMostSleepAlone = 5 * kMillisecond;
constexpr Nanoseconds kIdleSleep = 1 * kSecond;
constexpr unsigned kSleepsAtEnd = 100;  // of a millisecond: a driver that hangs must not hold exit

enum WatchState : std::uint32_t { kNone, kStarted, kImpossible, kEnded };

Nanoseconds between(Nanoseconds least, Nanoseconds value, Nanoseconds most) {
  return value < least ? least : value < most ? value : most;
}

// What went without an event is taken as ended after its estimate. Under the lock.
void end_what_has_no_event(GateState& state, Nanoseconds now) {
  gate::TenantGate& tenant = state.tenant;
  if (state.marks.count() == 0 && state.unmarked != 0) {
    const gate::TenantReport report = tenant.report();
    if (now >= report.last_activity(now) + state.unmarked_estimate_ns) {
      tenant.completed(now, state.unmarked, state.unmarked_estimate_ns);
      state.unmarked = 0;
      state.unmarked_estimate_ns = 0;
    }
  }
  const Nanoseconds quick = tenant.unmarked();
  if (quick != state.quick_seen) {
    state.quick_seen = quick;
    state.quick_seen_at = now;
  } else if (quick != 0 && state.marks.count() == 0 &&
             now >= state.quick_seen_at + quick + tenant.options().silence) {
    tenant.take_unmarked();
    state.quick_seen = 0;
  }
}

// Whether the broker is to hear that nothing is in flight. Under the lock.
bool has_news(GateState& state, const gate::Window& window, Nanoseconds now) {
  bool news = false;
  const bool ends = window.limited || !window.open;
  if (ends && !state.drained_told && state.tenant.drained(now, window))
    news = state.drained_told = true;
  if (!state.silence_told && state.tenant.silent(now)) {
    news = state.silence_told = true;
    // The next launch of an online tenant begins a burst.
    if (state.is_online()) state.quick.store(false, std::memory_order_relaxed);
  }
  return news;
}

// Beside a competitor: until the work that ends next should have ended, and no longer than an
// eighth of what is left where it matters when exactly all has: the turn passes on then, and the
// broker foretells it from what was last seen, or the durations scatter. To look only where the end
// of all was expected costs 3 to 10 % of the device.
Nanoseconds contended_sleep(const GateState& state, const gate::Window& window, Nanoseconds now) {
  const gate::TenantReport report = state.tenant.report();
  const Nanoseconds left = state.tenant.work_left(now);
  const bool ends =
      !window.open || report.waiting > 0 || (window.limited && window.end - now < left + left / 4);
  const Nanoseconds next = report.since + report.head_ns - now;
  Nanoseconds sleep = next < left ? next : left;
  if (ends || report.tail_deviation_ns > left / 4) {
    const Nanoseconds fine = left / kLooksToTheEnd;
    const Nanoseconds least = state.scaled(kLeastSleepPrecise);
    const Nanoseconds most = fine > least ? fine : least;
    if (sleep > most) sleep = most;
  }
  return between(state.scaled(kLeastSleep << state.looks_in_vain), sleep,
                 state.scaled(kMostSleepContended));
}

bool is_contended(const GateState& state, const gate::Window& window) {
  return window.limited || !window.open || state.is_online();
}

// How long nothing is to be looked at. Under the lock.
Nanoseconds sleep_after(const GateState& state, const gate::Window& window, Nanoseconds now) {
  const gate::TenantGate& tenant = state.tenant;
  const bool contended = is_contended(state, window);
  if (state.marks.count() != 0 || state.unmarked != 0) {
    if (contended) return contended_sleep(state, window, now);
    return between(state.scaled(kLeastSleepAlone), tenant.work_left(now) / 2,
                   state.scaled(kMostSleepAlone));
  }
  if (tenant.unmarked() != 0)
    return between(state.scaled(kLeastSleepAlone), tenant.unmarked(),
                   state.scaled(kMostSleepAlone));
  if (contended && !state.silence_told) return tenant.options().silence;
  return kIdleSleep;
}

// One look. How long to sleep after it.
Nanoseconds tend(GateState& state) {
  const std::uint32_t ended_before = state.completions.load();
  look(state);
  const bool in_vain = state.completions.load() == ended_before;
  const Nanoseconds now = monotonic_now();
  bool news = false;
  Nanoseconds sleep = 0;
  {
    const Holding holding(state.lock);
    const gate::Window window = window_of(state);
    end_what_has_no_event(state, now);
    news = is_contended(state, window) && has_news(state, window, now);
    publish(state);
    if (!in_vain || state.tenant.work_left(now) > 0)
      state.looks_in_vain = 0;
    else if (state.looks_in_vain < kMostDoublings)
      ++state.looks_in_vain;
    sleep = sleep_after(state, window, now);
    state.watch_wakes_at.store(now + sleep);
  }
  if (news) tell_broker(state);
  return sleep;
}

void* watch(void* argument) {
  GateState& state = *static_cast<GateState*>(argument);
  const Inside inside;
  prctl(PR_SET_NAME, "aliquot-gate");
  prctl(PR_SET_TIMERSLACK, 1UL);
  // Questions from here must not spoil a capture in another thread.
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  real::cuThreadExchangeStreamCaptureMode(&mode);
  while (!state.watch_stops.load()) {
    const std::uint32_t kicks = state.kicks.load();
    const Nanoseconds sleep = tend(state);
    futex_wait(state.kicks, kicks, sleep, false);
  }
  state.watch.store(kEnded, std::memory_order_release);
  return nullptr;
}

void* thread_call(const char* name) {
  void* const found = libc_dlsym()(nullptr, name);
  return found != nullptr ? found : libc_dlsym()(handle_of(Library::kCuda), name);
}

bool start(GateState& state) {
  using Thread = unsigned long;
  using Create = int (*)(Thread*, const void*, void* (*)(void*), void*);
  using Detach = int (*)(Thread);
  const auto create = reinterpret_cast<Create>(thread_call("pthread_create"));
  const auto detach = reinterpret_cast<Detach>(thread_call("pthread_detach"));
  if (create == nullptr || detach == nullptr) return false;
  static constinit std::atomic<bool> exit_noted{false};
  if (!exit_noted.exchange(true) && atexit(stop_watches) != 0) return false;
  sigset_t all, before;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, &before);
  Thread thread = 0;
  const bool started = create(&thread, nullptr, watch, &state) == 0;
  if (started) detach(thread);
  sigprocmask(SIG_SETMASK, &before, nullptr);
  return started;
}

}  // namespace

void ensure_watch(GateState& state) {
  std::uint32_t none = kNone;
  if (state.watch.load(std::memory_order_acquire) != kNone || state.watch_stops.load() ||
      !state.watch.compare_exchange_strong(none, kStarted))
    return;
  if (!start(state)) state.watch.store(kImpossible);
}

void stop_watches() {
  const timespec pause{.tv_sec = 0, .tv_nsec = kMillisecond};
  for (auto& gate : quick_gates) {
    auto* state = static_cast<GateState*>(gate.load(std::memory_order_acquire));
    if (state == nullptr) continue;
    state->watch_stops.store(true);
    state->kicks.fetch_add(1);
    futex_wake(state->kicks, 1, false);
    for (unsigned i = 0; state->watch.load(std::memory_order_acquire) == kStarted; ++i) {
      if (i == kSleepsAtEnd) break;
      nanosleep(&pause, nullptr);
    }
  }
}

// Alone, as late as the watcher's own next look would be: a launch then wakes nobody who is awake
// every millisecond anyway.
Nanoseconds next_look(const GateState& state, const gate::Window& window, Nanoseconds now) {
  const Nanoseconds left = state.tenant.work_left(now);
  return now + (is_contended(state, window)
                    ? left
                    : between(state.scaled(kLeastSleepAlone), left, state.scaled(kMostSleepAlone)));
}

void kick_watch(GateState& state, Nanoseconds until) {
  if (state.watch_wakes_at.load() <= until + kLeastSleep) return;
  state.watch_wakes_at.store(until);
  state.kicks.fetch_add(1);
  futex_wake(state.kicks, 1, false);
}

}  // namespace aliquot::interposer
