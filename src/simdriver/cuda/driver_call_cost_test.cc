// What calls cost their caller, on a machine whose costs are large enough to see on a busy host.
#include <algorithm>
#include <chrono>

#include "simdriver/cuda/builtin_kernels.h"
#include "simdriver/cuda/test_driver.h"

namespace aliquot::simdriver::test {
namespace {

constexpr std::uint64_t kMs = 1'000'000;

// Half speed: costs are the machine's time, and the host waits twice as long.
[[maybe_unused]] const auto* const kMachine =
    machine_for_tests("t4x1", "", [](MachineSpec& machine) {
      Timing& timing = machine.models[0].timing;
      timing.context_create_ns = 20 * kMs;
      timing.alloc_ns = 5 * kMs;
      timing.free_ns = 3 * kMs;
      timing.launch_ns = 2 * kMs;
      timing.graph_launch_ns = 4 * kMs;
      timing.graph_node_ns = 1 * kMs;
      machine.time_scale_micro = kRealTime / 2;
    });

// Milliseconds of the host that `call` takes; it must succeed.
template <typename Call>
double cost_ms(Call call) {
  const auto began = std::chrono::steady_clock::now();
  EXPECT_EQ(call(), CUDA_SUCCESS);
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - began)
      .count();
}

// The least of several, for bounds from above: the host may be busy.
template <typename Call>
double least_ms(Call call) {
  double least = cost_ms(call);
  for (int i = 0; i < 4; ++i) least = std::min(least, cost_ms(call));
  return least;
}

class CallCostTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(CU(cuInit)(0), CUDA_SUCCESS);
    created_ms_ = cost_ms([this] { return CU(cuDevicePrimaryCtxRetain)(&context_, 0); });
    ASSERT_EQ(CU(cuCtxSetCurrent)(context_), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuModuleLoadData)(&module_, kBuiltinPtx), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuModuleGetFunction)(&spin_, module_, "aliquot_spin"), CUDA_SUCCESS);
  }
  void TearDown() override { CU(cuDevicePrimaryCtxRelease_v2)(0); }
  CUresult launch(CUstream stream) {
    std::uint64_t ns = 1;
    void* arguments[] = {&ns};
    return CU(cuLaunchKernel)(spin_, 1, 1, 1, 32, 1, 1, 0, stream, arguments, nullptr);
  }
  double created_ms_ = 0;
  CUcontext context_ = nullptr;
  CUmodule module_ = nullptr;
  CUfunction spin_ = nullptr;
};

TEST_F(CallCostTest, AContextTakesItsTimeToMakeAndNoneToJoin) {
  EXPECT_GE(created_ms_, 40.0);
  CUcontext same = nullptr;
  EXPECT_LT(least_ms([&] { return CU(cuDevicePrimaryCtxRetain)(&same, 0); }), 20.0);
  for (int i = 0; i < 5; ++i) CU(cuDevicePrimaryCtxRelease_v2)(0);
}

TEST_F(CallCostTest, MemoryCostsWhenTheGpuIsAskedForIt) {
  CUdeviceptr large = 0;
  EXPECT_GE(cost_ms([&] { return CU(cuMemAlloc_v2)(&large, 8u << 20); }), 10.0);
  CUdeviceptr small = 0;
  EXPECT_GE(cost_ms([&] { return CU(cuMemAlloc_v2)(&small, 4096); }), 10.0);
  EXPECT_LT(least_ms([&] { return CU(cuMemAlloc_v2)(&small, 4096); }), 9.0);
  EXPECT_GE(cost_ms([&] { return CU(cuMemFree_v2)(large); }), 6.0);
}

TEST_F(CallCostTest, ARefusedAllocationCostsNothing) {
  const double refused_ms = least_ms([] {
    CUdeviceptr address = 0;
    const CUresult result = CU(cuMemAlloc_v2)(&address, 1ull << 40);
    return result == CUDA_ERROR_OUT_OF_MEMORY ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN;
  });
  EXPECT_LT(refused_ms, 9.0);
}

TEST_F(CallCostTest, ALaunchCostsItsCallerAndAGraphOncePlusItsNodes) {
  CUstream stream = nullptr;
  ASSERT_EQ(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  EXPECT_GE(cost_ms([&] { return launch(stream); }), 4.0);

  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
  ASSERT_EQ(CU(cuStreamBeginCapture_v2)(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), CUDA_SUCCESS);
  // Recording is not launching.
  EXPECT_LT(least_ms([&] { return launch(stream); }), 4.0);
  ASSERT_EQ(CU(cuStreamEndCapture)(stream, &graph), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuGraphInstantiateWithFlags)(&executable, graph, 0), CUDA_SUCCESS);
  EXPECT_GE(cost_ms([&] { return CU(cuGraphLaunch)(executable, stream); }), 8.0 + 5 * 2.0);
}

}  // namespace
}  // namespace aliquot::simdriver::test
