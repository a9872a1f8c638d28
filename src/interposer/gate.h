// The compute gate: where work of this process meets its lease's window on a GPU.
//
// pass(work, call) makes the driver's call when it may be made. Open and alone: one word of the
// grant is read and the call is made. Otherwise the caller waits, never for ever: at a closed gate
// for the broker's word (and asks it again every 50 ms), in the limiter for its own work to end. A
// gate whose broker has given no sign of life for 3 s is broken: the work is refused with the
// driver's ordinary launch error and counted in the ledger. Which decision is taken is the room
// gate's business (TenantGate); here are clocks, waits, events and shared words.
//
// Any thread of an attached process. Nothing is locked while the driver's call runs. During a
// stream capture the captured work passes untouched, and nothing is asked of the driver around it.
#pragma once

#include <atomic>

#include "gate/tenant.h"
#include "gate/window.h"
#include "interposer/account.h"
#include "interposer/devices.h"
#include "interposer/gate_work.h"
#include "interposer/real_driver.h"

namespace aliquot::interposer {

// The part of a GPU's gate that a launch on its way reads. Null until the first work there.
struct QuickGate {
  explicit QuickGate(const gate::TenantOptions& options) : tenant(options) {}
  gate::TenantGate tenant;
  // Off: the first launch of an online tenant's burst must be told to the broker.
  std::atomic<bool> quick{true};
};
extern constinit std::atomic<QuickGate*> quick_gates[wire::kMaxGpus];  // NOLINT

// The GPU that work of this thread goes to; not below kMaxGpus: ask the driver what is wrong.
inline unsigned gpu_of_thread() {
  if (tenant().gpu_count() == 1) return 0;
  CUdevice device = -1;
  return real::cuCtxGetDevice(&device) == CUDA_SUCCESS ? gpu_of(device) : kForeignGpu;
}

[[gnu::always_inline]] inline bool passes_at_once(unsigned gpu, const Work& work) {
  const std::uint64_t word = tenant().grant().gpu[gpu].window.load(std::memory_order_relaxed);
  if (!gate::is_open_alone(word)) return word == 0;  // 0: no gate here, docs/formats/gate_words.md
  QuickGate* gate = quick_gates[gpu].load(std::memory_order_acquire);
  if (gate == nullptr) return false;
  // A kernel that was never measured goes the longer way, so that it is.
  const Nanoseconds unmeasured =
      work.assumed_ns != 0 ? work.assumed_ns : gate->tenant.options().unknown_kernel;
  return gate->quick.load(std::memory_order_relaxed) &&
         gate->tenant.quick(gate->tenant.estimate(work.key, unmeasured));
}

// One piece of work at a gate that is not open and alone.
class Passage {
 public:
  Passage(unsigned gpu, const Work& work) : gpu_(gpu), work_(work) {}
  Passage(const Passage&) = delete;
  Passage& operator=(const Passage&) = delete;

  // Waits until the work may be launched. False: the gate is broken.
  bool begin();
  // Exactly once after begin() said yes: what the driver answered.
  void end(CUresult result);

 private:
  void mark_begin();

  unsigned gpu_;
  Work work_;
  bool ungated_ = false;  // goes into a graph
  gate::Window window_;
  Nanoseconds estimate_ns_ = 0;
  std::uint64_t context_ = 0;  // the thread's, where marked
  CUevent start_ = nullptr;    // recorded before the call
  CUevent end_ = nullptr;
};

template <class Call>
CUresult pass(unsigned gpu, const Work& work, Call call) {
  if (gpu >= wire::kMaxGpus || passes_at_once(gpu, work)) return call();
  Passage passage(gpu, work);
  if (!passage.begin()) return CUDA_ERROR_LAUNCH_FAILED;
  const CUresult result = call();
  passage.end(result);
  return result;
}

// Before the driver ends a context (by its handle as a number; 0: none): its events end with it,
// and nobody may ask for them any more.
void gate_forget_context(std::uint64_t context);
// Ends the threads that watch work end: at the program's exit, before the driver goes.
void stop_watches();
// In the child of a fork.
void forget_gates();

}  // namespace aliquot::interposer
