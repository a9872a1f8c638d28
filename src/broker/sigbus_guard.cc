#include "broker/sigbus_guard.h"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>

namespace aliquot::broker {
namespace {

struct Range {
  std::atomic<std::uintptr_t> base;
  std::atomic<std::size_t> bytes;  // 0: free
  std::atomic<bool> tripped;
};

constexpr int kRanges = 4096;
Range ranges[kRanges];
struct sigaction previous;

void handle(int signal, siginfo_t* info, void* context) {
  const auto at = reinterpret_cast<std::uintptr_t>(info->si_addr);
  for (Range& range : ranges) {
    const std::size_t bytes = range.bytes.load(std::memory_order_acquire);
    const std::uintptr_t base = range.base.load(std::memory_order_relaxed);
    if (bytes == 0 || at < base || at - base >= bytes) continue;
    static const auto page = static_cast<std::uintptr_t>(4096);
    void* hole = reinterpret_cast<void*>(at & ~(page - 1));
    if (mmap(hole, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
        MAP_FAILED)
      break;
    range.tripped.store(true, std::memory_order_release);
    return;
  }
  if ((previous.sa_flags & SA_SIGINFO) != 0 && previous.sa_sigaction != nullptr) {
    previous.sa_sigaction(signal, info, context);
    return;
  }
  // The instruction runs again after the return and meets the old disposition.
  sigaction(SIGBUS, &previous, nullptr);
}

void install_once() {
  static const bool done = [] {
    struct sigaction action{};
    action.sa_sigaction = handle;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigemptyset(&action.sa_mask);
    return sigaction(SIGBUS, &action, &previous) == 0;
  }();
  static_cast<void>(done);
}

}  // namespace

Result<SigbusGuard> SigbusGuard::watch(void* base, std::size_t bytes) {
  install_once();
  for (int i = 0; i < kRanges; ++i) {
    std::size_t unused = 0;
    if (!ranges[i].bytes.compare_exchange_strong(unused, 1)) continue;
    ranges[i].base.store(reinterpret_cast<std::uintptr_t>(base), std::memory_order_relaxed);
    ranges[i].tripped.store(false, std::memory_order_relaxed);
    ranges[i].bytes.store(bytes, std::memory_order_release);
    return SigbusGuard(i);
  }
  return Error{Errc::kExhausted, "watch a mapped file: too many leases (4096)"};
}

SigbusGuard& SigbusGuard::operator=(SigbusGuard&& other) noexcept {
  if (this != &other) {
    if (entry_ >= 0) ranges[entry_].bytes.store(0, std::memory_order_release);
    entry_ = other.entry_;
    other.entry_ = -1;
  }
  return *this;
}

SigbusGuard::~SigbusGuard() {
  if (entry_ >= 0) ranges[entry_].bytes.store(0, std::memory_order_release);
}

bool SigbusGuard::tripped() const {
  return entry_ >= 0 && ranges[entry_].tripped.load(std::memory_order_acquire);
}

}  // namespace aliquot::broker
