#include "interposer/short_lock.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace aliquot::interposer {
namespace {

constexpr int kSpins = 100;

void futex(std::atomic<std::uint32_t>* word, int operation, std::uint32_t value) {
  syscall(SYS_futex, word, operation | FUTEX_PRIVATE_FLAG, value, nullptr, nullptr, 0);
}

}  // namespace

void ShortLock::wait() {
  for (int i = 0; i < kSpins; ++i) {
    std::uint32_t free = kFree;
    if (word_.compare_exchange_weak(free, kHeld, std::memory_order_acquire)) return;
    __builtin_ia32_pause();
  }
  // Spurious returns, signals and an early wake-up only lead to another round.
  while (word_.exchange(kHeldAndWanted, std::memory_order_acquire) != kFree)
    futex(&word_, FUTEX_WAIT, kHeldAndWanted);
}

void ShortLock::wake() { futex(&word_, FUTEX_WAKE, 1); }

}  // namespace aliquot::interposer
