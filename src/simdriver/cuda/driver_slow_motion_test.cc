// A machine whose time goes at a tenth of the host's.
#include <chrono>

#include "simdriver/cuda/builtin_kernels.h"
#include "simdriver/cuda/test_driver.h"

namespace aliquot::simdriver::test {
namespace {

[[maybe_unused]] const auto* const kMachine = machine_for_tests(
    "t4x1", "", [](MachineSpec& machine) { machine.time_scale_micro = kRealTime / 10; });

TEST(SlowMotion, AKernelTakesTenTimesAsLongForTheHostAndTheSameForEvents) {
  ASSERT_EQ(CU(cuInit)(0), CUDA_SUCCESS);
  CUcontext context = nullptr;
  ASSERT_EQ(CU(cuDevicePrimaryCtxRetain)(&context, 0), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuCtxSetCurrent)(context), CUDA_SUCCESS);
  CUmodule module = nullptr;
  CUfunction spin = nullptr;
  ASSERT_EQ(CU(cuModuleLoadData)(&module, kBuiltinPtx), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuModuleGetFunction)(&spin, module, "aliquot_spin"), CUDA_SUCCESS);
  CUevent start = nullptr;
  CUevent end = nullptr;
  ASSERT_EQ(CU(cuEventCreate)(&start, 0), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuEventCreate)(&end, 0), CUDA_SUCCESS);

  std::uint64_t spin_ns = 5'000'000;
  void* arguments[] = {&spin_ns};
  const auto began = std::chrono::steady_clock::now();
  EXPECT_EQ(CU(cuEventRecord)(start, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuLaunchKernel)(spin, 1, 1, 1, 32, 1, 1, 0, nullptr, arguments, nullptr),
            CUDA_SUCCESS);
  EXPECT_EQ(CU(cuEventRecord)(end, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuEventSynchronize)(end), CUDA_SUCCESS);
  const std::chrono::duration<double> host = std::chrono::steady_clock::now() - began;
  EXPECT_GE(host.count(), 0.05);

  float milliseconds = 0;
  EXPECT_EQ(CU(cuEventElapsedTime_v2)(&milliseconds, start, end), CUDA_SUCCESS);
  EXPECT_GE(milliseconds, 5.0F);
  EXPECT_LT(milliseconds, 5.5F);  // and what submitting cost, in the machine's time
}

}  // namespace
}  // namespace aliquot::simdriver::test
