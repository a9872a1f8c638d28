#include "interposer/gate_state.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <new>

#include "interposer/captures.h"
#include "interposer/real_driver.h"

namespace aliquot::interposer {
namespace {

constexpr double kUnscaled = 1e6;

double slowness_of(const wire::GrantGpu& gpu) {
  const auto scale = static_cast<double>(gpu.time_scale_micro.load(std::memory_order_relaxed));
  return scale > 0 ? kUnscaled / scale : 1.0;
}

void raise_to(std::atomic<std::uint64_t>& word, std::uint64_t least) {
  std::uint64_t now = word.load(std::memory_order_relaxed);
  while (now < least && !word.compare_exchange_weak(now, least)) {
  }
}

}  // namespace

constinit std::atomic<QuickGate*> quick_gates[wire::kMaxGpus];

GateState::GateState(unsigned number)
    : QuickGate(gate::slowed({}, slowness_of(process_tenant.grant().gpu[number]))),
      gpu(number),
      slowness(slowness_of(process_tenant.grant().gpu[number])) {
  raise_to(line().gate[0], tenant_lease().slot() + 1);
}

GateState* gate_state(unsigned gpu) {
  QuickGate* known = quick_gates[gpu].load(std::memory_order_acquire);
  if (known != nullptr) return static_cast<GateState*>(known);
  void* memory =
      mmap(nullptr, sizeof(GateState), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  auto* made = new (memory) GateState(gpu);  // NOLINT(cppcoreguidelines-owning-memory): never freed
  if (quick_gates[gpu].compare_exchange_strong(known, made, std::memory_order_acq_rel)) return made;
  munmap(memory, sizeof(GateState));
  return static_cast<GateState*>(known);
}

// The parent's states stay where they are, for a thread of its that is forked in the middle of one
// sees them no more; a fork costs their memory.
void forget_gates() {
  for (auto& gate : quick_gates) gate.store(nullptr, std::memory_order_relaxed);
  forget_captures();
}

Nanoseconds monotonic_now() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * kSecond + t.tv_nsec;
}

gate::Window window_of(const GateState& state) {
  gate::Window window;
  // A writer that died in the middle leaves neither the old window nor the new one.
  if (!gate::read_window(state.grant().window, state.grant().gate, window)) return {};
  return window;
}

void publish(GateState& state) {
  state.tenant.head_is(state.marks.first_estimate());
  gate::publish(
      state.has_peers ? state.tenant.report_with_promises(monotonic_now()) : state.tenant.report(),
      state.cell().demand, state.cell().gate);
}

void tell_broker(GateState& state) {
  state.line().demand.fetch_add(1, std::memory_order_release);
  futex_wake(state.line().demand, 1, true);
}

void futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t value, Nanoseconds timeout_ns,
                bool shared) {
  const int saved = errno;
  const timespec timeout{.tv_sec = timeout_ns / kSecond, .tv_nsec = timeout_ns % kSecond};
  syscall(SYS_futex, &word, shared ? FUTEX_WAIT : FUTEX_WAIT_PRIVATE, value, &timeout, nullptr, 0);
  errno = saved;
}

void futex_wake(std::atomic<std::uint32_t>& word, int threads, bool shared) {
  const int saved = errno;
  syscall(SYS_futex, &word, shared ? FUTEX_WAKE : FUTEX_WAKE_PRIVATE, threads, nullptr, nullptr, 0);
  errno = saved;
}

// What a mark's launch took, in real time; 0: not known.
static Nanoseconds duration_of(const GateState& state, const Mark& mark) {
  if (mark.start == nullptr) return 0;
  float milliseconds = 0;
  if (real::cuEventElapsedTime(&milliseconds, mark.start, mark.end) != CUDA_SUCCESS) return 0;
  // Not llround: it would need libm. NOLINTNEXTLINE(bugprone-incorrect-roundings): none is negative
  return state.scaled(static_cast<Nanoseconds>(static_cast<double>(milliseconds) * 1e6 + 0.5));
}

// Under `looking`. True: it had ended.
static bool look_at(GateState& state, const Mark& mark) {
  const Nanoseconds asked = monotonic_now();
  const CUresult result = real::cuEventQuery(mark.end);
  // Any other error: its context is lost, and nothing of it runs any more.
  if (result == CUDA_ERROR_NOT_READY) {
    const Holding holding(state.lock);
    state.marks.note_running(mark.id, asked);
    return false;
  }
  const Nanoseconds took = result == CUDA_SUCCESS ? duration_of(state, mark) : 0;
  const Holding holding(state.lock);
  const Mark taken = state.marks.take(mark.id);
  if (taken.id == 0) return false;
  const Nanoseconds ended = ended_at(taken, state.tenant.report().since, monotonic_now());
  if (took > 0) state.tenant.measured(taken.key, took);
  state.tenant.completed(ended, taken.count, taken.estimate_ns);
  state.events.give(taken.context, taken.start);
  state.events.give(taken.context, taken.end);
  return true;
}

bool look(GateState& state) {
  if (!state.looking.try_lock()) return false;
  bool ended = false;
  for (bool more = true; more;) {
    Mark heads[Marks::kStreams];
    state.lock.lock();
    const unsigned count = state.marks.heads(heads);
    state.lock.unlock();
    more = false;
    for (unsigned i = 0; i < count; ++i) more |= look_at(state, heads[i]);
    ended |= more;
  }
  if (ended) {
    state.lock.lock();
    publish(state);
    state.lock.unlock();
    state.completions.fetch_add(1);
    if (state.in_limiter.load() != 0) futex_wake(state.completions, INT32_MAX, false);
  }
  state.looking.unlock();
  return true;
}

}  // namespace aliquot::interposer
