#include "broker/compute_thread.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <ctime>

namespace aliquot::broker {
namespace {

constexpr Nanoseconds kNever = INT64_MAX;
// Of words that the kernel does not wait for: before Linux 5.16 all of them, else those beyond the
// most that one call takes.
constexpr Nanoseconds kLook = 1 * kMillisecond;
constexpr std::size_t kMostWords = FUTEX_WAITV_MAX;
constexpr unsigned long kTimerSlackNs = 1'000;

futex_waitv waiter(const std::atomic<std::uint32_t>& word, std::uint32_t seen,
                   std::uint32_t flags) {
  return {.val = seen,
          .uaddr = reinterpret_cast<std::uint64_t>(&word),
          .flags = FUTEX_32 | flags,
          .__reserved = 0};
}

}  // namespace

ComputeThread::ComputeThread(std::unique_ptr<ComputeGpu> gpu) : gpu_(std::move(gpu)) {
  // Signals are for the loop's thread.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

ComputeThread::~ComputeThread() {
  stopped_ = true;
  poke();
  thread_.join();
}

void ComputeThread::poke() {
  poked_.fetch_add(1, std::memory_order_release);
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&poked_), FUTEX_WAKE_PRIVATE, 1, nullptr,
          nullptr, 0);
}

void ComputeThread::run() {
  pthread_setname_np(pthread_self(), "compute");
  prctl(PR_SET_TIMERSLACK, kTimerSlackNs);
  // Where it may: each wake that comes late on a busy host is device time lost. It never runs long.
  const sched_param first{.sched_priority = 1};
  pthread_setschedparam(pthread_self(), SCHED_RR, &first);
  while (!stopped_) {
    const std::uint32_t poked = poked_.load(std::memory_order_acquire);
    Nanoseconds next = kNever;
    {
      const std::lock_guard lock(mutex_);
      next = due_ = gpu_->step(clock_.now());
      demands_ = gpu_->demands();
    }
    wait(next, poked);
  }
}

// A word whose page is gone (its tenant has truncated the ledger) makes the call fail; the next
// step reads it and so puts another page there.
void ComputeThread::wait(Nanoseconds until, std::uint32_t poked) {
  futex_waitv words[kMostWords] = {waiter(poked_, poked, FUTEX_PRIVATE_FLAG)};
  unsigned count = 1;
  if (can_wait_for_many_)
    for (const ComputeGpu::Demand& demand : demands_)
      if (count < kMostWords) words[count++] = waiter(*demand.word, demand.seen, 0);
  if (demands_.size() >= count) until = std::min(until, clock_.now() + kLook);
  const timespec deadline{until / kSecond, until % kSecond};
  const timespec* limit = until == kNever ? nullptr : &deadline;
  if (can_wait_for_many_) {
    if (syscall(SYS_futex_waitv, words, count, 0, limit, CLOCK_MONOTONIC) < 0 && errno == ENOSYS)
      can_wait_for_many_ = false;
    return;
  }
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&poked_), FUTEX_WAIT_BITSET_PRIVATE, poked,
          limit, nullptr, FUTEX_BITSET_MATCH_ANY);
}

}  // namespace aliquot::broker
