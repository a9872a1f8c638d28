// ShortLock: a one-word lock for a few instructions of bookkeeping, never held over a driver call.
//
// It is private memory, so it dies with the process and no other process can meet it. It needs no
// pthread and no constructor: usable before main and after fork, where `reset` forgets a holder
// that does not exist in the child. Any thread.
#pragma once

#include <atomic>
#include <cstdint>

namespace aliquot::interposer {

class ShortLock {
 public:
  void lock() {
    if (!try_lock()) wait();
  }
  bool try_lock() {
    std::uint32_t free = kFree;
    return word_.compare_exchange_strong(free, kHeld, std::memory_order_acquire);
  }
  // No locked instruction: a third of what table and lock cost; and no load of the word that one
  // has just written. Somebody who begins to wait between the store and the look is not woken;
  // wait() sleeps no longer than kNapNs therefore.
  void unlock() {
    word_.store(kFree, std::memory_order_release);
    if (wanted_.load(std::memory_order_relaxed)) wake();
  }
  // Only where no other thread can run: in the child of a fork.
  void reset() {
    word_.store(kFree, std::memory_order_relaxed);
    wanted_.store(false, std::memory_order_relaxed);
  }

 private:
  enum : std::uint32_t { kFree, kHeld };
  static constexpr long kNapNs = 1'000'000;
  void wait();
  void wake();

  std::atomic<std::uint32_t> word_{kFree};
  std::atomic<bool> wanted_{false};  // somebody sleeps, or did and left others behind
};

// Holds a ShortLock for a scope.
class Holding {
 public:
  explicit Holding(ShortLock& lock) : lock_(lock) { lock_.lock(); }
  ~Holding() { lock_.unlock(); }
  Holding(const Holding&) = delete;
  Holding& operator=(const Holding&) = delete;

 private:
  ShortLock& lock_;
};

}  // namespace aliquot::interposer
