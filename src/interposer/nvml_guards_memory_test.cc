#include <gtest/gtest.h>

#include "interposer/testing/nvml_share.h"

namespace aliquot::interposer {
namespace {

using testing::NvmlShare;
constexpr std::uint64_t kMiB = NvmlShare::kMiB, kGiB = NvmlShare::kGiB;

nvmlMemory_v2_t memory_v2() {
  nvmlMemory_v2_t memory{};
  memory.version = driver_abi::nvml_struct_version<nvmlMemory_v2_t>(2);
  return memory;
}

TEST(NvmlMemory, ShowsTheShareInBothVersions) {
  NvmlShare share(4 * kGiB);
  nvmlDevice_t device = share.begin();
  ASSERT_NE(device, nullptr);
  share.process(5, 100, 1100, 1 * kGiB);
  share.process(6, 101, 1101, 512 * kMiB);

  nvmlMemory_t memory{};
  ASSERT_EQ(nvmlDeviceGetMemoryInfo(device, &memory), NVML_SUCCESS);
  EXPECT_EQ(memory.total, 4 * kGiB);
  EXPECT_EQ(memory.used, 1536 * kMiB);
  EXPECT_EQ(memory.free, 2560 * kMiB);
  nvmlMemory_v2_t newer = memory_v2();
  ASSERT_EQ(nvmlDeviceGetMemoryInfo_v2(device, &newer), NVML_SUCCESS);
  EXPECT_EQ(newer.total, memory.total);
  EXPECT_EQ(newer.used, memory.used);
  EXPECT_EQ(newer.free, memory.free);
  EXPECT_EQ(newer.reserved, 0u);
  EXPECT_EQ(newer.version, memory_v2().version);
}

TEST(NvmlMemory, EachGpuHasItsOwn) {
  NvmlShare share(4 * kGiB);
  share.lease.grant.gpu[1].memory_limit_bytes = 1 * kGiB;
  ASSERT_NE(share.begin(), nullptr);
  nvmlDevice_t second = nullptr;
  ASSERT_EQ(nvmlDeviceGetHandleByIndex_v2(1, &second), NVML_SUCCESS);
  share.process(5, 100, 1100, 256 * kMiB, 1);

  nvmlMemory_t memory{};
  ASSERT_EQ(nvmlDeviceGetMemoryInfo(second, &memory), NVML_SUCCESS);
  EXPECT_EQ(memory.total, 1 * kGiB);
  EXPECT_EQ(memory.used, 256 * kMiB);
}

TEST(NvmlMemory, ALimitAboveTheGpuShowsTheGpu) {
  NvmlShare share(wire::kUnlimitedBytes);
  nvmlDevice_t device = share.begin();
  ASSERT_NE(device, nullptr);
  nvmlMemory_t memory{};
  ASSERT_EQ(nvmlDeviceGetMemoryInfo(device, &memory), NVML_SUCCESS);
  EXPECT_EQ(memory.total, share.fake.gpus[1].total_bytes);
}

TEST(NvmlMemory, ALimitLoweredBelowUseShowsAFullShare) {
  NvmlShare share(4 * kGiB);
  nvmlDevice_t device = share.begin();
  ASSERT_NE(device, nullptr);
  share.process(5, 100, 1100, 3 * kGiB);
  share.lease.grant.gpu[0].memory_limit_bytes = 2 * kGiB;

  nvmlMemory_t memory{};
  ASSERT_EQ(nvmlDeviceGetMemoryInfo(device, &memory), NVML_SUCCESS);
  EXPECT_EQ(memory.total, 2 * kGiB);
  EXPECT_EQ(memory.used, 2 * kGiB);
  EXPECT_EQ(memory.free, 0u);
}

TEST(NvmlMemory, TheLibrarysErrorTouchesNoOutput) {
  NvmlShare share;
  nvmlDevice_t device = share.begin();
  ASSERT_NE(device, nullptr);
  nvmlMemory_t memory{1, 2, 3};
  share.fake.fail["nvmlDeviceGetMemoryInfo"] = NVML_ERROR_GPU_IS_LOST;
  EXPECT_EQ(nvmlDeviceGetMemoryInfo(device, &memory), NVML_ERROR_GPU_IS_LOST);
  EXPECT_EQ(memory.total, 1u);
  nvmlMemory_v2_t wrong = memory_v2();
  wrong.version += 1;
  wrong.total = 9;
  EXPECT_EQ(nvmlDeviceGetMemoryInfo_v2(device, &wrong), NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
  EXPECT_EQ(wrong.total, 9u);
  EXPECT_EQ(nvmlDeviceGetMemoryInfo(device, nullptr), NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(nvmlDeviceGetMemoryInfo_v2(device, nullptr), NVML_ERROR_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace aliquot::interposer
