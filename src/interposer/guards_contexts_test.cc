#include <gtest/gtest.h>

#include "interposer/testing/share.h"

namespace aliquot::interposer {
namespace {

using testing::Share;
using wire::Kind;
constexpr std::uint64_t kMiB = Share::kMiB;
constexpr std::uint64_t kOverhead = 300 * kMiB;

class Contexts : public ::testing::Test {
 protected:
  Contexts() {
    for (auto& gpu : share_.lease.grant.gpu) gpu.context_overhead_bytes = kOverhead;
    EXPECT_EQ(cuInit(0), CUDA_SUCCESS);
  }
  Share share_{1024 * kMiB, 2};
  CUcontext context_ = nullptr;
};

TEST_F(Contexts, CostTheModelsOverheadUntilDestroyed) {
  ASSERT_EQ(cuCtxCreate_v2(&context_, 0, 1), CUDA_SUCCESS);
  EXPECT_EQ(share_.used(1), kOverhead);
  EXPECT_EQ(share_.kind(Kind::kContext, 1), kOverhead);
  EXPECT_EQ(share_.used(0), 0u);
  ASSERT_EQ(cuCtxDestroy_v2(context_), CUDA_SUCCESS);
  EXPECT_EQ(share_.used(1), 0u);
}

TEST_F(Contexts, AreNotMadeWithoutRoomForThem) {
  share_.lease.grant.gpu[0].memory_limit_bytes = kOverhead - 1;
  EXPECT_EQ(cuCtxCreate_v2(&context_, 0, 0), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuDevicePrimaryCtxRetain(&context_, 0), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(context_, nullptr);
  EXPECT_EQ(share_.fake.calls["cuCtxCreate_v2"] + share_.fake.calls["cuDevicePrimaryCtxRetain"],
            0u);
}

TEST_F(Contexts, FailuresOfTheDriverRollBack) {
  share_.fake.fail["cuCtxCreate_v4"] = CUDA_ERROR_UNKNOWN;
  EXPECT_EQ(cuCtxCreate_v4(&context_, nullptr, 0, 0), CUDA_ERROR_UNKNOWN);
  share_.fake.fail["cuDevicePrimaryCtxRetain"] = CUDA_ERROR_ECC_UNCORRECTABLE;
  EXPECT_EQ(cuDevicePrimaryCtxRetain(&context_, 0), CUDA_ERROR_ECC_UNCORRECTABLE);
  EXPECT_EQ(context_, nullptr);
  EXPECT_EQ(share_.used(), 0u);
  ASSERT_EQ(cuCtxCreate_v2(&context_, 0, 0), CUDA_SUCCESS);
  share_.fake.fail["cuCtxDestroy_v2"] = CUDA_ERROR_UNKNOWN;
  EXPECT_EQ(cuCtxDestroy_v2(context_), CUDA_ERROR_UNKNOWN);
  EXPECT_EQ(share_.used(), kOverhead);
}

TEST_F(Contexts, ThatEndTakeTheirMemoryWithThem) {
  ASSERT_EQ(cuCtxCreate_v2(&context_, 0, 0), CUDA_SUCCESS);
  CUdeviceptr address = 0;
  CUmodule module = nullptr;
  ASSERT_EQ(cuMemAlloc_v2(&address, 5 * kMiB), CUDA_SUCCESS);
  ASSERT_EQ(cuModuleLoadData(&module, "ptx"), CUDA_SUCCESS);
  CUcontext other = nullptr;
  ASSERT_EQ(cuCtxCreate_v2(&other, 0, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemAlloc_v2(&address, kMiB), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxDestroy_v2(context_), CUDA_SUCCESS);
  EXPECT_EQ(share_.used(), kOverhead + kMiB);  // the other one and what was made in it
  EXPECT_EQ(share_.fake.taken_bytes(), kMiB);
}

TEST_F(Contexts, ThePrimaryOneCostsOnceHoweverOftenRetained) {
  for (int i = 0; i < 3; ++i) ASSERT_EQ(cuDevicePrimaryCtxRetain(&context_, 0), CUDA_SUCCESS);
  EXPECT_EQ(share_.used(), kOverhead);
  cuCtxSetCurrent(context_);
  CUdeviceptr address = 0;
  ASSERT_EQ(cuMemAlloc_v2(&address, kMiB), CUDA_SUCCESS);
  for (int i = 0; i < 2; ++i) ASSERT_EQ(cuDevicePrimaryCtxRelease_v2(0), CUDA_SUCCESS);
  EXPECT_EQ(share_.used(), kOverhead + kMiB);
  ASSERT_EQ(cuDevicePrimaryCtxRelease_v2(0), CUDA_SUCCESS);
  EXPECT_EQ(share_.used(), 0u);
  EXPECT_EQ(cuDevicePrimaryCtxRelease_v2(0), CUDA_ERROR_INVALID_CONTEXT);
}

TEST_F(Contexts, ResettingThePrimaryOneGivesAllBack) {
  ASSERT_EQ(cuDevicePrimaryCtxRetain(&context_, 0), CUDA_SUCCESS);
  cuCtxSetCurrent(context_);
  CUdeviceptr address = 0;
  ASSERT_EQ(cuMemAlloc_v2(&address, kMiB), CUDA_SUCCESS);
  ASSERT_EQ(cuDevicePrimaryCtxReset_v2(0), CUDA_SUCCESS);
  EXPECT_EQ(share_.used(), 0u);
  ASSERT_EQ(cuDevicePrimaryCtxRetain(&context_, 0), CUDA_SUCCESS);
  EXPECT_EQ(share_.used(), kOverhead);
}

TEST_F(Contexts, GreenOnesKeepThePrimaryOneAlive) {
  CUgreenCtx green = nullptr;
  ASSERT_EQ(cuGreenCtxCreate(&green, nullptr, 0, 1), CUDA_SUCCESS);
  EXPECT_EQ(share_.used(), kOverhead);
  share_.fake.fail["cuGreenCtxDestroy"] = CUDA_ERROR_UNKNOWN;
  EXPECT_EQ(cuGreenCtxDestroy(green), CUDA_ERROR_UNKNOWN);
  EXPECT_EQ(share_.used(), kOverhead);
  ASSERT_EQ(cuGreenCtxDestroy(green), CUDA_SUCCESS);
  EXPECT_EQ(share_.used(), 0u);
}

TEST_F(Contexts, ALargerHeapIsChargedAndASmallerOneGivesBack) {
  ASSERT_EQ(cuCtxCreate_v2(&context_, 0, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 101 * kMiB), CUDA_SUCCESS);  // 1 MiB before
  EXPECT_EQ(share_.used(), kOverhead + 100 * kMiB);
  EXPECT_EQ(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 4096 * kMiB), CUDA_ERROR_OUT_OF_MEMORY);
  ASSERT_EQ(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 51 * kMiB), CUDA_SUCCESS);
  EXPECT_EQ(share_.used(), kOverhead + 50 * kMiB);
  ASSERT_EQ(cuCtxDestroy_v2(context_), CUDA_SUCCESS);
  EXPECT_EQ(share_.used(), 0u);
}

TEST_F(Contexts, OnAnUnknownDeviceTheDriversErrorComesBack) {
  EXPECT_EQ(cuCtxCreate_v2(&context_, 0, 7), CUDA_ERROR_INVALID_DEVICE);
  EXPECT_EQ(cuCtxCreate_v2(&context_, 0, -1), CUDA_ERROR_INVALID_DEVICE);
  EXPECT_EQ(cuDevicePrimaryCtxRetain(&context_, 1000000), CUDA_ERROR_INVALID_DEVICE);
}

TEST(ContextsBeforeInit, AreTheDriversErrorNotOurs) {
  Share share(64 * kMiB);
  CUcontext context = nullptr;
  EXPECT_EQ(cuDevicePrimaryCtxRetain(&context, 0), CUDA_ERROR_NOT_INITIALIZED);
}

}  // namespace
}  // namespace aliquot::interposer
