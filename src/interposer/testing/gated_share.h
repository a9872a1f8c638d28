// GatedShare: a share whose compute gate a test opens and closes as the broker would.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "gate/shared_words.h"
#include "interposer/gate_state.h"
#include "interposer/testing/share.h"

namespace aliquot::interposer::testing {

inline constexpr CUfunction kNoFunction = nullptr;

class GatedShare : public Share {
 public:
  explicit GatedShare(unsigned gpus = 1) : Share(kGiB, gpus) {
    for (unsigned gpu = 0; gpu < gpus; ++gpu) set({}, gpu);
    sign_of_life();
  }

  void set(const gate::Window& window, unsigned gpu = 0) {
    wire::GrantGpu& words = lease.grant.gpu[gpu];
    gate::publish(window, words.window, words.gate);
    syscall(SYS_futex, &words.window, FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
  }
  void open_alone(unsigned gpu = 0) { set({.open = true, .number = 1, .opened_at = 1}, gpu); }
  // Beside a competitor, for so long from now.
  void open_for(Nanoseconds time, std::uint32_t number, unsigned gpu = 0) {
    const Nanoseconds now = monotonic_now();
    set({.open = true, .limited = true, .number = number, .end = now + time, .opened_at = now},
        gpu);
  }
  void close(unsigned gpu = 0) { set({.limited = true}, gpu); }
  void sign_of_life(Nanoseconds at = monotonic_now()) {
    for (auto& gpu : lease.grant.gpu) gpu.gate[3] = static_cast<std::uint64_t>(at);
  }

  gate::TenantReport report(unsigned gpu = 0) const {
    const wire::Cell& cell = lease.view.cell(kSlot, gpu);
    gate::TenantReport report;
    gate::read_report(cell.demand, cell.gate, report);
    return report;
  }
  std::uint32_t demand(unsigned gpu = 0) const { return lease.view.gpu(gpu).demand; }
  std::uint32_t refused(unsigned gpu = 0) const {
    return lease.view.cell(kSlot, gpu).gate_refusals;
  }
  std::uint64_t calls(const char* name) {
    const std::scoped_lock lock(fake.mutex);
    return fake.calls[name];
  }
  // fork() while the watcher is outside the fake driver: a child would never see its lock released.
  pid_t fork_between_calls() {
    const std::scoped_lock lock(fake.mutex);
    return fork();
  }
};

inline CUresult launch(CUfunction function = kNoFunction, CUstream stream = nullptr) {
  return cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr);
}

template <class Condition>
bool eventually(Condition condition) {
  for (int i = 0; i < 2000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

}  // namespace aliquot::interposer::testing
