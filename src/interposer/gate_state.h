// What this process knows of its gate on one GPU. Shared by the gate's own files.
#pragma once

#include <atomic>

#include "gate/shared_words.h"
#include "interposer/gate.h"
#include "interposer/gate_marks.h"
#include "interposer/short_lock.h"

namespace aliquot::interposer {

struct GateState : QuickGate {
  explicit GateState(unsigned gpu);

  const unsigned gpu;
  const double slowness;  // real nanoseconds for one of the machine's

  // Two locks; `looking` is held while the driver is asked about events, and taken before `lock`.
  ShortLock looking;
  ShortLock lock;
  // Under `lock`, and TenantGate but for what it says itself:
  Marks marks;
  FreeEvents events;
  std::uint32_t unmarked = 0;  // launches since the last mark, beside a competitor
  Nanoseconds unmarked_estimate_ns = 0;
  bool has_peers = false;  // other processes of the lease use this gate
  bool drained_told = false;
  bool silence_told = false;
  Nanoseconds quick_seen = 0;  // work that went quickly, when looked at last
  Nanoseconds quick_seen_at = 0;
  unsigned looks_in_vain = 0;  // at work that is late
  bool broken = false;
  std::uint64_t broken_word = 0;  // the window word then

  std::atomic<std::uint32_t> completions{0};  // futex: work has ended
  std::atomic<std::uint32_t> in_limiter{0};   // threads that wait for that

  // The watcher thread (gate_watch.cc).
  std::atomic<std::uint32_t> watch{0};  // 0 none, 1 started, 2 could not be
  std::atomic<std::uint32_t> kicks{0};  // futex: look again
  std::atomic<Nanoseconds> watch_wakes_at{0};
  std::atomic<bool> watch_stops{false};

  const wire::GrantGpu& grant() const { return tenant_lease().grant().gpu[gpu]; }
  wire::Cell& cell() const { return tenant_lease().ledger().cell(tenant_lease().slot(), gpu); }
  wire::GpuLine& line() const { return tenant_lease().ledger().gpu(gpu); }
  bool is_online() const {
    return grant().share_class.load(std::memory_order_relaxed) ==
           static_cast<std::uint32_t>(wire::ShareClass::kOnline);
  }
  Nanoseconds scaled(Nanoseconds machine_ns) const {
    return static_cast<Nanoseconds>(static_cast<double>(machine_ns) * slowness);
  }

 private:
  static Tenant& tenant_lease() { return process_tenant; }
};

Nanoseconds monotonic_now();

// The state of a GPU, made at the first call; null: no memory for it.
GateState* gate_state(unsigned gpu);

// Under `lock`.
gate::Window window_of(const GateState& state);
void publish(GateState& state);
// Wakes the broker.
void tell_broker(GateState& state);

// Asks the driver what has ended and keeps account of it. False: somebody else is doing so. Not in
// a thread that may not ask (captures.h).
bool look(GateState& state);

// The thread that looks while nobody else does. Starts it if need be.
void ensure_watch(GateState& state);
// When it is to look at the latest at what was launched just now. Under `lock`.
Nanoseconds next_look(const GateState& state, const gate::Window& window, Nanoseconds now);
// Something is in flight until `until` at least: it is to look then at the latest.
void kick_watch(GateState& state, Nanoseconds until);

// 0 at a timeout or a spurious return as well: look again.
void futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t value, Nanoseconds timeout_ns,
                bool shared);
void futex_wake(std::atomic<std::uint32_t>& word, int threads, bool shared);

}  // namespace aliquot::interposer
