// For tests: leases' pages in plain memory, tenants that write the gate's words as processes do,
// and a device that runs their kernels one after the other. Virtual time; no thread, no process.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <vector>

#include "broker/compute_gpu.h"
#include "gate/shared_words.h"

namespace aliquot::broker {

inline constexpr Nanoseconds kUs = kMicrosecond;
inline constexpr Nanoseconds kMs = kMillisecond;

// One lease on one GPU, with `slots` process slots.
class PlayedLease {
 public:
  explicit PlayedLease(unsigned slots = 4)
      : memory_(wire::LedgerView::size_bytes(1, slots) / sizeof(Line) + 1), slots_(slots) {
    grant.weight = 1;
  }
  wire::LedgerView ledger() { return {memory_.data(), 1, slots_}; }
  wire::Cell& cell(unsigned slot) { return ledger().cell(slot, 0); }
  void say(const gate::TenantReport& report, unsigned slot = 0) {
    gate::publish(report, cell(slot).demand, cell(slot).gate);
  }
  void ring() { ledger().gpu(0).demand.fetch_add(1); }
  gate::Window window() const {
    gate::Window window;
    EXPECT_TRUE(gate::read_window(grant.window, grant.gate, window));
    return window;
  }

  wire::GrantGpu grant{};

 private:
  struct alignas(128) Line {
    char bytes[128];
  };
  std::vector<Line> memory_;
  unsigned slots_;
};

// A process that always has work, as far as its window lets it.
struct PlayedProcess {
  PlayedLease lease;
  std::size_t tenant = 0;
  Nanoseconds kernel = 500 * kUs;
  unsigned depth = 1;  // launches that it keeps in flight
  bool wants = true;
  bool ignores_gate = false;
  gate::TenantReport report{};
  std::uint32_t used_number = 0;
  Nanoseconds begun = 0;  // of device time, for the test
  Nanoseconds ran = 0;

  bool may_launch(Nanoseconds now) const {
    if (!wants || report.in_flight >= depth) return false;
    const gate::Window window = lease.window();
    if (ignores_gate) return true;
    if (!window.open) return false;
    return !window.limited || window.number != used_number ||
           now + report.outstanding_ns + kernel / 2 <= window.end;
  }
};

class PlayedGpu {
 public:
  explicit PlayedGpu(const gate::GpuTerms& terms = {})
      : gpu(std::make_unique<ComputeGpu>(terms, 1.0)) {}

  PlayedProcess& add(std::uint32_t cores, Nanoseconds kernel = 500 * kUs) {
    auto& process = *processes.emplace_back(std::make_unique<PlayedProcess>());
    process.lease.grant.cores = cores;
    process.kernel = kernel;
    enter(process);
    return process;
  }
  void enter(PlayedProcess& process) {
    process.tenant = gpu->add(now, process.lease.grant, process.lease.ledger(), 0);
    gpu->take_slot(now, process.tenant, 0);
    next_step = now;
  }
  // The broker is killed; a new one finds what the leases' pages say.
  void next_broker() {
    gpu = std::make_unique<ComputeGpu>(gate::GpuTerms{}, 1.0);
    for (auto& process : processes) enter(*process);
  }

  void run(Nanoseconds duration) {
    const Nanoseconds end = now + duration;
    while (now < end) {
      launch_all();
      const Nanoseconds kernel_end = queue.empty() ? end : running_until;
      now = std::min({std::max(now, next_step), std::max(now, kernel_end), end});
      if (!queue.empty() && running_until <= now) complete();
      if (next_step <= now) next_step = std::max(gpu->step(now), now + 1);
    }
  }
  double percent(const PlayedProcess& process, Nanoseconds since) const {
    return 100.0 * static_cast<double>(process.ran) / static_cast<double>(now - since);
  }
  // What each does from now on is measured anew.
  Nanoseconds measure() {
    for (auto& process : processes) process->ran = 0;
    return now;
  }

  Nanoseconds now = kSecond;
  Nanoseconds next_step = 0;
  std::unique_ptr<ComputeGpu> gpu;
  std::vector<std::unique_ptr<PlayedProcess>> processes;

 private:
  struct Kernel {
    PlayedProcess* process;
    Nanoseconds length;
  };

  // Whoever finds the gate closed says so, once, and rings.
  void launch_all() {
    for (auto& process : processes) {
      while (process->may_launch(now)) launch(*process);
      const std::uint32_t waiting = process->wants && process->report.in_flight < process->depth;
      if (waiting == process->report.waiting) continue;
      process->report.waiting = waiting;
      tell(*process);
    }
  }
  void launch(PlayedProcess& process) {
    gate::TenantReport& report = process.report;
    const gate::Window window = process.lease.window();
    process.used_number = window.number;
    report.last_launch = now;
    if (report.in_flight++ == 0) report.since = now;
    report.waiting = 0;
    report.outstanding_ns += process.kernel;
    report.head_ns = process.kernel;
    report.longest_ns = process.kernel;
    queue.push_back({&process, process.kernel});
    if (queue.size() == 1) begin();
    tell(process);
  }
  void begin() {
    PlayedProcess& process = *queue.front().process;
    running_until = now + queue.front().length;
    if (process.report.busy_since == 0) process.report.busy_since = now;
    process.lease.say(process.report);
  }
  void complete() {
    PlayedProcess& process = *queue.front().process;
    gate::TenantReport& report = process.report;
    process.ran += queue.front().length;
    report.outstanding_ns -= queue.front().length;
    report.since = now;
    queue.pop_front();
    if (--report.in_flight == 0 || (!queue.empty() && queue.front().process != &process)) {
      report.busy_ns += now - report.busy_since;
      report.busy_since = 0;
      report.busy_until = now;
    }
    if (!queue.empty()) begin();
    tell(process);
  }
  void tell(PlayedProcess& process) {
    process.lease.say(process.report);
    process.lease.ring();
    next_step = now;
  }

  std::deque<Kernel> queue;
  Nanoseconds running_until = 0;
};

}  // namespace aliquot::broker
