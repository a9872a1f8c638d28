#include "interposer/short_lock.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace aliquot::interposer {
namespace {

constexpr int kSpins = 100;

void futex(std::atomic<std::uint32_t>* word, int operation, std::uint32_t value,
           const timespec* longest) {
  syscall(SYS_futex, word, operation | FUTEX_PRIVATE_FLAG, value, longest, nullptr, 0);
}

}  // namespace

void ShortLock::wait() {
  for (int i = 0; i < kSpins; ++i) {
    std::uint32_t free = kFree;
    if (word_.compare_exchange_weak(free, kHeld, std::memory_order_acquire)) return;
    __builtin_ia32_pause();
  }
  // Spurious returns, signals, the end of a nap and an early wake-up only lead to another round.
  const timespec nap{0, kNapNs};
  for (;;) {
    wanted_.store(true);  // also as the next holder, for those who sleep on
    if (word_.exchange(kHeld, std::memory_order_acquire) == kFree) return;
    futex(&word_, FUTEX_WAIT, kHeld, &nap);
  }
}

void ShortLock::wake() {
  wanted_.store(false, std::memory_order_relaxed);
  futex(&word_, FUTEX_WAKE, 1, nullptr);
}

}  // namespace aliquot::interposer
