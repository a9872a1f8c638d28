// ComputeThread: keeps one GPU's ComputeGpu going. Its thread sleeps until a lease's process wants
// the broker to look (futex_waitv on the ledgers' demand words) or until the next turn is due, so
// that no slow question to a driver delays a window, and an idle GPU costs nothing.
//
// Leaves to others: what a step does. with() from any thread. The destructor ends the thread;
// windows stay as they are, for the next broker.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <thread>

#include "broker/compute_gpu.h"
#include "common/clock.h"

namespace aliquot::broker {

class ComputeThread {
 public:
  explicit ComputeThread(std::unique_ptr<ComputeGpu> gpu);
  ~ComputeThread();
  ComputeThread(const ComputeThread&) = delete;
  ComputeThread& operator=(const ComputeThread&) = delete;

  // Calls work(gpu, now) while no step runs; what it changes is in force when this returns.
  template <typename Work>
  auto with(Work work) {
    const Poke poke(*this);
    const std::lock_guard lock(mutex_);
    return work(*gpu_, clock_.now());
  }

  // Steps now, then calls work(gpu, now), which changes nothing. The thread sleeps on, unless it is
  // now due earlier than it sleeps for.
  template <typename Work>
  auto step(Work work) {
    const std::lock_guard lock(mutex_);
    const Nanoseconds now = clock_.now();
    if (gpu_->step(now) < due_) poke();
    return work(static_cast<const ComputeGpu&>(*gpu_), now);
  }

  // For work that neither steps nor changes anything: the thread sleeps on.
  template <typename Work>
  auto peek(Work work) {
    const std::lock_guard lock(mutex_);
    return work(static_cast<const ComputeGpu&>(*gpu_));
  }

 private:
  // Makes the thread look again at what it waits for.
  class Poke {
   public:
    explicit Poke(ComputeThread& thread) : thread_(thread) {}
    ~Poke() { thread_.poke(); }
    Poke(const Poke&) = delete;
    Poke& operator=(const Poke&) = delete;

   private:
    ComputeThread& thread_;
  };

  void run();
  void poke();
  void wait(Nanoseconds until, std::uint32_t poked);

  MonotonicClock clock_;  // of the words in shared memory and of the kernel's timeouts
  std::unique_ptr<ComputeGpu> gpu_;
  std::mutex mutex_;
  Nanoseconds due_ = 0;  // when the thread steps by itself; guarded by mutex_
  std::atomic<bool> stopped_{false};
  std::atomic<std::uint32_t> poked_{0};
  bool can_wait_for_many_ = true;
  std::vector<ComputeGpu::Demand> demands_;
  std::thread thread_;
};

}  // namespace aliquot::broker
