// For tests: four GPUs whose memory and use can be changed while a broker in another process probes
// them. Lies in memory that children of fork share. Any thread.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "broker/gpu_probe.h"

namespace aliquot::broker {

inline constexpr std::uint64_t kTestGiB = 1ull << 30;

// Memory that children of fork share.
template <typename T>
class Shared {
 public:
  Shared()
      : value_(new(mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                        0)) T{}) {}
  ~Shared() { munmap(value_, sizeof(T)); }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  T& operator*() const { return *value_; }
  T* operator->() const { return value_; }

 private:
  T* value_;
};

// Four GPUs of 40 GiB; what is free and who uses it can be changed while the broker runs.
struct FakeMachine {
  static constexpr unsigned kGpus = 4;
  struct Gpu {
    std::atomic<std::uint64_t> free{40 * kTestGiB};
    std::atomic<std::int32_t> pid{0};
    std::atomic<std::uint64_t> pid_bytes{0};
    // That much of every sample period of a tenth of a second.
    std::atomic<std::int32_t> user{0};
    std::atomic<unsigned> user_percent{0};
  } gpu[kGpus];
  unsigned id = static_cast<unsigned>(getpid());
  std::atomic<bool> broken{false};
  std::atomic<bool> machine_wide{false};
};

class FakeProbe final : public GpuProbe {
 public:
  explicit FakeProbe(FakeMachine& machine) : machine_(machine) {}
  Result<std::vector<ProbedGpu>> gpus() override {
    if (machine_.broken) return Error{Errc::kUnavailable, "ask the fake driver: it is broken"};
    std::vector<ProbedGpu> all;
    for (unsigned i = 0; i < FakeMachine::kGpus; ++i) {
      ProbedGpu gpu;
      // Of this machine of this test: others run at the same time.
      char uuid[64];
      snprintf(uuid, sizeof uuid, "GPU-%08x-0000-0000-0000-%012x", machine_.id, i);
      gpu.uuid = uuid;
      gpu.name = "FAKE";
      gpu.total_bytes = 40 * kTestGiB;
      gpu.free_bytes = machine_.gpu[i].free;
      gpu.context_overhead_bytes = 300u << 20;
      if (machine_.gpu[i].pid != 0)
        gpu.processes.push_back({machine_.gpu[i].pid, machine_.gpu[i].pid_bytes});
      all.push_back(gpu);
    }
    return all;
  }
  bool is_machine_wide() const override { return machine_.machine_wide; }
  Result<std::vector<ProbedUse>> use(std::uint32_t gpu, std::uint64_t after_us) override {
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    const std::uint64_t tenth = (static_cast<std::uint64_t>(now.tv_sec) * 10 +
                                 static_cast<std::uint64_t>(now.tv_nsec) / 100'000'000) *
                                100'000;
    const FakeMachine::Gpu& used = machine_.gpu[gpu];
    if (used.user == 0 || tenth <= after_us) return std::vector<ProbedUse>{};
    return std::vector<ProbedUse>{{used.user, tenth, static_cast<double>(used.user_percent)}};
  }

 private:
  FakeMachine& machine_;
};

class FakeProbes final : public ProbeSource {
 public:
  explicit FakeProbes(FakeMachine& machine) : machine_(machine) {}
  Result<std::unique_ptr<GpuProbe>> open(const std::string& driver) override {
    if (driver != "fake") return Error{Errc::kNotFound, "open driver " + driver + ": no such one"};
    return std::unique_ptr<GpuProbe>(std::make_unique<FakeProbe>(machine_));
  }

 private:
  FakeMachine& machine_;
};

}  // namespace aliquot::broker
