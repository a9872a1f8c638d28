#include <gtest/gtest.h>

#include "interposer/testing/share.h"

namespace aliquot::interposer {
namespace {

using testing::Share;
constexpr std::uint64_t kMiB = Share::kMiB;

TEST(LinearMemory, IsChargedRoundedTo512BytesAndComesBackWhenFreed) {
  Share share(64 * kMiB);
  ASSERT_NE(share.begin(), nullptr);
  CUdeviceptr address = 0;
  ASSERT_EQ(cuMemAlloc_v2(&address, 1000), CUDA_SUCCESS);
  EXPECT_EQ(share.used(), 1024u);
  EXPECT_EQ(share.kind(wire::Kind::kLinear), 1024u);
  ASSERT_EQ(cuMemFree_v2(address), CUDA_SUCCESS);
  EXPECT_EQ(share.used(), 0u);
  EXPECT_EQ(share.kind(wire::Kind::kLinear), 0u);
}

TEST(LinearMemory, IsRefusedAboveTheLimitWithoutAskingTheDriver) {
  Share share(4 * kMiB);
  ASSERT_NE(share.begin(), nullptr);
  CUdeviceptr address = 0xdead;
  EXPECT_EQ(cuMemAlloc_v2(&address, 4 * kMiB + 1), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(address, 0xdeadu);
  EXPECT_EQ(share.fake.calls["cuMemAlloc_v2"], 0u);
  EXPECT_EQ(share.refusals(), 1u);
  EXPECT_EQ(share.used(), 0u);
  EXPECT_EQ(cuMemAlloc_v2(&address, 4 * kMiB), CUDA_SUCCESS);  // to the byte
}

TEST(LinearMemory, HugeSizesDoNotWrap) {
  Share share(4 * kMiB);
  ASSERT_NE(share.begin(), nullptr);
  CUdeviceptr address = 0;
  size_t pitch = 0;
  for (const std::size_t bytes : {~std::size_t{0}, ~std::size_t{0} - 511, std::size_t{1} << 63}) {
    EXPECT_EQ(cuMemAlloc_v2(&address, bytes), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_EQ(cuMemAllocPitch_v2(&address, &pitch, bytes, bytes, 4), CUDA_ERROR_OUT_OF_MEMORY);
  }
  EXPECT_EQ(cuMemAllocPitch_v2(&address, &pitch, 1u << 20, std::size_t{1} << 44, 4),
            CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(share.used(), 0u);
}

TEST(LinearMemory, TheDriversFailureRollsBackAndIsReturnedUnchanged) {
  Share share(64 * kMiB);
  ASSERT_NE(share.begin(), nullptr);
  CUdeviceptr address = 0xdead;
  size_t pitch = 7;
  share.fake.fail["cuMemAlloc_v2"] = CUDA_ERROR_ECC_UNCORRECTABLE;
  EXPECT_EQ(cuMemAlloc_v2(&address, kMiB), CUDA_ERROR_ECC_UNCORRECTABLE);
  share.fake.fail["cuMemAllocManaged"] = CUDA_ERROR_UNKNOWN;
  EXPECT_EQ(cuMemAllocManaged(&address, kMiB, 1), CUDA_ERROR_UNKNOWN);
  share.fake.fail["cuMemAllocPitch_v2"] = CUDA_ERROR_INVALID_VALUE;
  EXPECT_EQ(cuMemAllocPitch_v2(&address, &pitch, 100, 100, 4), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(address, 0xdeadu);
  EXPECT_EQ(pitch, 7u);
  EXPECT_EQ(share.used(), 0u);
  EXPECT_EQ(cuMemAlloc_v2(nullptr, kMiB), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(share.used(), 0u);
}

TEST(LinearMemory, AFreeThatFailsStaysCharged) {
  Share share(64 * kMiB);
  ASSERT_NE(share.begin(), nullptr);
  CUdeviceptr address = 0;
  ASSERT_EQ(cuMemAlloc_v2(&address, kMiB), CUDA_SUCCESS);
  share.fake.fail["cuMemFree_v2"] = CUDA_ERROR_ILLEGAL_ADDRESS;
  EXPECT_EQ(cuMemFree_v2(address), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(share.used(), kMiB);
  EXPECT_EQ(cuMemFree_v2(address), CUDA_SUCCESS);
  EXPECT_EQ(share.used(), 0u);
}

TEST(LinearMemory, ADoubleOrUnknownFreeIsTheDriversToJudge) {
  Share share(64 * kMiB);
  ASSERT_NE(share.begin(), nullptr);
  CUdeviceptr address = 0, other = 0;
  ASSERT_EQ(cuMemAlloc_v2(&address, kMiB), CUDA_SUCCESS);
  ASSERT_EQ(cuMemAlloc_v2(&other, kMiB), CUDA_SUCCESS);
  ASSERT_EQ(cuMemFree_v2(address), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree_v2(address), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemFree_v2(0x1234), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(share.fake.calls["cuMemFree_v2"], 3u);
  EXPECT_EQ(share.used(), kMiB);  // the other one, counted once
}

TEST(LinearMemory, APitchedAllocationIsChargedByTheDriversPitch) {
  Share share(64 * kMiB);
  ASSERT_NE(share.begin(), nullptr);
  share.fake.pitch_granule = 4096;
  CUdeviceptr address = 0;
  size_t pitch = 0;
  ASSERT_EQ(cuMemAllocPitch_v2(&address, &pitch, 100, 1000, 4), CUDA_SUCCESS);
  EXPECT_EQ(pitch, 4096u);
  EXPECT_EQ(share.used(), 4096u * 1000);
  ASSERT_EQ(cuMemFree_v2(address), CUDA_SUCCESS);
  EXPECT_EQ(share.used(), 0u);
}

TEST(LinearMemory, APitchThatTurnsOutTooWideIsUndone) {
  Share share(kMiB);
  ASSERT_NE(share.begin(), nullptr);
  share.fake.pitch_granule = 4096;
  CUdeviceptr address = 0xdead;
  size_t pitch = 7;
  EXPECT_EQ(cuMemAllocPitch_v2(&address, &pitch, 100, 1000, 4), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(address, 0xdeadu);
  EXPECT_EQ(pitch, 7u);
  EXPECT_EQ(share.fake.taken_bytes(), 0u);
  EXPECT_EQ(share.used(), 0u);
}

TEST(LinearMemory, IsChargedToTheGpuOfTheCurrentContext) {
  Share share(64 * kMiB, 2);
  ASSERT_NE(share.begin(1), nullptr);
  CUdeviceptr address = 0;
  ASSERT_EQ(cuMemAlloc_v2(&address, kMiB), CUDA_SUCCESS);
  EXPECT_EQ(share.used(0), 0u);
  EXPECT_EQ(share.used(1), kMiB);
}

TEST(LinearMemory, WithoutAContextTheDriversErrorComesBackAndNothingIsCharged) {
  Share share(64 * kMiB);
  ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
  cuCtxSetCurrent(nullptr);
  CUdeviceptr address = 0;
  EXPECT_EQ(cuMemAlloc_v2(&address, kMiB), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(share.used(), 0u);
}

TEST(LinearMemory, ManagedMemoryIsCharged) {
  Share share(4 * kMiB);
  ASSERT_NE(share.begin(), nullptr);
  CUdeviceptr address = 0;
  ASSERT_EQ(cuMemAllocManaged(&address, 3 * kMiB, 1), CUDA_SUCCESS);
  EXPECT_EQ(share.used(), 3 * kMiB);
  CUdeviceptr second = 0;
  EXPECT_EQ(cuMemAllocManaged(&second, 2 * kMiB, 1), CUDA_ERROR_OUT_OF_MEMORY);
  ASSERT_EQ(cuMemFree_v2(address), CUDA_SUCCESS);
  EXPECT_EQ(share.used(), 0u);
}

TEST(LinearMemory, HostMemoryIsNotCharged) {
  Share share(4 * kMiB);
  ASSERT_NE(share.begin(), nullptr);
  void* memory = nullptr;
  EXPECT_EQ(cuMemHostAlloc(&memory, 64 * kMiB, 0), CUDA_SUCCESS);
  EXPECT_EQ(share.used(), 0u);
}

}  // namespace
}  // namespace aliquot::interposer
