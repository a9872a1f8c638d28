// How long things last on a machine in real time: by events, as the model says; by the host's
// clock, no shorter, and no longer than the host's own lateness.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "simdriver/cuda/builtin_kernels.h"
#include "simdriver/cuda/test_driver.h"

namespace aliquot::simdriver::test {
namespace {

using std::chrono::duration;
using std::chrono::steady_clock;

constexpr std::uint64_t kMs = 1'000'000;
constexpr double kToldMs = 3;
constexpr double kLinkGbytesPerS = 0.1;  // so slow that the simulator's own copying is nothing

// Latencies that begin a kernel or a copy are left out: each case is one of durations.
[[maybe_unused]] const auto* const kMachine =
    machine_for_tests("t4x1", "", [](MachineSpec& machine) {
      GpuModel& model = machine.models[0];
      model.timing.start_ns = model.timing.copy_latency_ns = 0;
      model.pcie.host_gbytes_per_s = kLinkGbytesPerS;
      machine.kernel_block_ns["told"] = static_cast<std::uint64_t>(kToldMs * kMs);
    });

constexpr char kTwoKernels[] = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .entry told() { ret; }
.visible .entry untold() { ret; }
)";

double milliseconds_since(steady_clock::time_point began) {
  return duration<double, std::milli>(steady_clock::now() - began).count();
}

// How late the host wakes a thread that sleeps, but for one time in a hundred.
double lateness_ms() {
  std::vector<double> late;
  for (int i = 0; i < 300; ++i) {
    const auto began = steady_clock::now();
    usleep(100);
    late.push_back(milliseconds_since(began) - 0.1);
  }
  std::ranges::sort(late);
  return late[late.size() * 99 / 100];
}

class Timing : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(CU(cuInit)(0), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuCtxCreate_v2)(&context_, 0, 0), CUDA_SUCCESS);
    spin_ = kernel(kBuiltinPtx, "aliquot_spin");
  }
  void TearDown() override { EXPECT_EQ(CU(cuCtxDestroy_v2)(context_), CUDA_SUCCESS); }
  static CUfunction kernel(const char* code, const char* name) {
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    EXPECT_EQ(CU(cuModuleLoadData)(&module, code), CUDA_SUCCESS);
    EXPECT_EQ(CU(cuModuleGetFunction)(&function, module, name), CUDA_SUCCESS);
    return function;
  }
  static void spin(CUfunction function, std::uint64_t ns) {
    void* arguments[] = {&ns};
    EXPECT_EQ(CU(cuLaunchKernel)(function, 1, 1, 1, 32, 1, 1, 0, nullptr, arguments, nullptr),
              CUDA_SUCCESS);
  }
  // Of a grid, between two events. It waits behind another kernel, so that the host's time between
  // the calls does not count.
  double told_by_events_ms(CUfunction function, unsigned blocks) {
    CUevent begin = nullptr;
    CUevent end = nullptr;
    float ms = 0;
    EXPECT_EQ(CU(cuEventCreate)(&begin, 0), CUDA_SUCCESS);
    EXPECT_EQ(CU(cuEventCreate)(&end, 0), CUDA_SUCCESS);
    spin(spin_, 200 * kMs);
    EXPECT_EQ(CU(cuEventRecord)(begin, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(CU(cuLaunchKernel)(function, blocks, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr),
              CUDA_SUCCESS);
    EXPECT_EQ(CU(cuEventRecord)(end, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(CU(cuEventSynchronize)(end), CUDA_SUCCESS);
    EXPECT_EQ(CU(cuEventElapsedTime_v2)(&ms, begin, end), CUDA_SUCCESS);
    return ms;
  }
  // `work` is never shorter by the host's clock than the model says; once in ten times at least, it
  // is no longer than that and the host's lateness.
  template <typename Work>
  void expect_by_the_hosts_clock(double model_ms, Work work) {
    const double late_ms = lateness_ms();
    if (late_ms > 2) GTEST_SKIP() << "the host wakes threads " << late_ms << " ms late";
    double least_ms = 1e9;
    for (int i = 0; i < 10; ++i) {
      const auto began = steady_clock::now();
      work();
      const double taken_ms = milliseconds_since(began);
      EXPECT_GE(taken_ms, model_ms);
      least_ms = std::min(least_ms, taken_ms);
    }
    EXPECT_LE(least_ms, model_ms + 3 * late_ms + 0.1);
  }

  CUcontext context_ = nullptr;
  CUfunction spin_ = nullptr;
};

TEST_F(Timing, AKernelLastsWhatTheMachineWasToldForEachOfItsWaves) {
  const CUfunction told = kernel(kTwoKernels, "told");
  const CUfunction untold = kernel(kTwoKernels, "untold");
  int blocks = 0;
  ASSERT_EQ(CU(cuOccupancyMaxActiveBlocksPerMultiprocessor)(&blocks, told, 32, 0), CUDA_SUCCESS);
  const auto wave = static_cast<unsigned>(blocks) * 40;  // of a T4's multiprocessors
  EXPECT_NEAR(told_by_events_ms(told, 1), kToldMs, 0.001);
  EXPECT_NEAR(told_by_events_ms(told, wave), kToldMs, 0.001);
  EXPECT_NEAR(told_by_events_ms(told, wave + 1), 2 * kToldMs, 0.001);
  EXPECT_NEAR(told_by_events_ms(untold, wave + 1), 2 * 0.002, 0.001);
}

TEST_F(Timing, AKernelThatSpinsLastsAsLongForTheHost) {
  expect_by_the_hosts_clock(20, [this] {
    spin(spin_, 20 * kMs);
    EXPECT_EQ(CU(cuCtxSynchronize)(), CUDA_SUCCESS);
  });
}

TEST_F(Timing, ACopyLastsForTheHostAsLongAsItsLinkTakes) {
  constexpr std::size_t kBytes = std::size_t{4} << 20;
  void* host = nullptr;
  CUdeviceptr memory = 0;
  ASSERT_EQ(CU(cuMemAllocHost_v2)(&host, kBytes), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuMemAlloc_v2)(&memory, kBytes), CUDA_SUCCESS);
  expect_by_the_hosts_clock(static_cast<double>(kBytes) / kLinkGbytesPerS / 1e6, [&] {
    EXPECT_EQ(CU(cuMemcpyDtoHAsync_v2)(host, memory, kBytes, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(CU(cuCtxSynchronize)(), CUDA_SUCCESS);
  });
}

// Slices of 2 ms in turns, and a switch between two of them: 18 from one that has work left.
TEST_F(Timing, TwoContextsLastAsLongAsTheirSlicesAndSwitches) {
  CUcontext second = nullptr;
  ASSERT_EQ(CU(cuCtxCreate_v2)(&second, 0, 0), CUDA_SUCCESS);
  const CUfunction spin_there = kernel(kBuiltinPtx, "aliquot_spin");
  expect_by_the_hosts_clock(2 * 20 + 18 * 0.1, [&] {
    spin(spin_there, 20 * kMs);
    ASSERT_EQ(CU(cuCtxSetCurrent)(context_), CUDA_SUCCESS);
    spin(spin_, 20 * kMs);
    EXPECT_EQ(CU(cuCtxSynchronize)(), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuCtxSetCurrent)(second), CUDA_SUCCESS);
    EXPECT_EQ(CU(cuCtxSynchronize)(), CUDA_SUCCESS);
  });
  EXPECT_EQ(CU(cuCtxDestroy_v2)(second), CUDA_SUCCESS);
}

}  // namespace
}  // namespace aliquot::simdriver::test
