#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "interposer/testing/share.h"

namespace aliquot::interposer {
namespace {

using testing::Share;
using wire::Kind;
constexpr std::uint64_t kMiB = Share::kMiB;
constexpr CUdeviceptr kAddress = 0x1'0000'0000;

class PhysicalMemory : public ::testing::Test {
 protected:
  PhysicalMemory() { EXPECT_NE(share_.begin(), nullptr); }
  CUmemAllocationProp on(int type, int id) {
    CUmemAllocationProp properties{};
    properties.type = 1;
    properties.location = {type, id};
    return properties;
  }
  CUmemGenericAllocationHandle create(std::uint64_t bytes, int device = 0) {
    const CUmemAllocationProp properties = on(CU_MEM_LOCATION_TYPE_DEVICE, device);
    CUmemGenericAllocationHandle handle = 0;
    EXPECT_EQ(cuMemCreate(&handle, bytes, &properties, 0), CUDA_SUCCESS);
    return handle;
  }
  Share share_{64 * kMiB, 2};
};

TEST_F(PhysicalMemory, IsChargedWhereThePropertiesSayWhateverContextIsCurrent) {
  cuCtxSetCurrent(nullptr);
  create(4 * kMiB, 1);
  EXPECT_EQ(share_.used(0), 0u);
  EXPECT_EQ(share_.used(1), 4 * kMiB);
  EXPECT_EQ(share_.kind(Kind::kVmm, 1), 4 * kMiB);
}

// Released by its maker it lives on with whoever imported it.
TEST_F(PhysicalMemory, OnceExportedStaysChargedAfterItsRelease) {
  const CUmemGenericAllocationHandle handle = create(4 * kMiB);
  int descriptor = -1;
  ASSERT_EQ(cuMemExportToShareableHandle(&descriptor, handle, 1, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemRelease(handle), CUDA_SUCCESS);
  EXPECT_EQ(share_.used(), 4 * kMiB);
}

TEST_F(PhysicalMemory, AnExportThatFailsChangesNothing) {
  const CUmemGenericAllocationHandle handle = create(4 * kMiB);
  int descriptor = -1;
  share_.fake.fail["cuMemExportToShareableHandle"] = CUDA_ERROR_UNKNOWN;
  ASSERT_EQ(cuMemExportToShareableHandle(&descriptor, handle, 1, 0), CUDA_ERROR_UNKNOWN);
  ASSERT_EQ(cuMemRelease(handle), CUDA_SUCCESS);
  EXPECT_EQ(share_.used(), 0u);
}

TEST_F(PhysicalMemory, OnTheHostCostsNothing) {
  CUmemGenericAllocationHandle handle = 0;
  for (const int type : {CU_MEM_LOCATION_TYPE_HOST, CU_MEM_LOCATION_TYPE_HOST_NUMA,
                         CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT}) {
    const CUmemAllocationProp properties = on(type, 17);
    EXPECT_EQ(cuMemCreate(&handle, 1024 * kMiB, &properties, 0), CUDA_SUCCESS);
    EXPECT_EQ(cuMemRelease(handle), CUDA_SUCCESS);
  }
  EXPECT_EQ(share_.used(), 0u);
}

TEST_F(PhysicalMemory, IsRefusedAboveTheLimitAndOnOtherGpus) {
  CUmemGenericAllocationHandle handle = 0xdead;
  CUmemAllocationProp properties = on(CU_MEM_LOCATION_TYPE_DEVICE, 0);
  EXPECT_EQ(cuMemCreate(&handle, 66 * kMiB, &properties, 0), CUDA_ERROR_OUT_OF_MEMORY);
  properties.location.id = 3;
  EXPECT_EQ(cuMemCreate(&handle, 2 * kMiB, &properties, 0), CUDA_ERROR_INVALID_DEVICE);
  EXPECT_EQ(share_.fake.calls["cuMemCreate"], 0u);
  properties.location.id = 0;
  share_.fake.fail["cuMemCreate"] = CUDA_ERROR_UNKNOWN;
  EXPECT_EQ(cuMemCreate(&handle, 2 * kMiB, &properties, 0), CUDA_ERROR_UNKNOWN);
  EXPECT_EQ(handle, 0xdeadu);
  EXPECT_EQ(share_.used(), 0u);
}

TEST_F(PhysicalMemory, ReleasingAMappedHandleUnchargesNothing) {
  const auto handle = create(4 * kMiB);
  ASSERT_EQ(cuMemMap(kAddress, 4 * kMiB, 0, handle, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemRelease(handle), CUDA_SUCCESS);
  EXPECT_EQ(share_.used(), 4 * kMiB);
  ASSERT_EQ(cuMemUnmap(kAddress, 4 * kMiB), CUDA_SUCCESS);
  EXPECT_EQ(share_.used(), 0u);
  EXPECT_EQ(share_.fake.taken_bytes(), 0u);
}

TEST_F(PhysicalMemory, UnmappingFirstThenReleasingEndsTheChargeAtTheRelease) {
  const auto handle = create(4 * kMiB);
  ASSERT_EQ(cuMemMap(kAddress, 2 * kMiB, 0, handle, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemMap(kAddress + 2 * kMiB, 2 * kMiB, 2 * kMiB, handle, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemUnmap(kAddress, 4 * kMiB), CUDA_SUCCESS);  // both at once
  EXPECT_EQ(share_.used(), 4 * kMiB);
  ASSERT_EQ(cuMemRelease(handle), CUDA_SUCCESS);
  EXPECT_EQ(share_.used(), 0u);
}

TEST_F(PhysicalMemory, ARetainedHandleKeepsTheCharge) {
  const auto handle = create(2 * kMiB);
  ASSERT_EQ(cuMemMap(kAddress, 2 * kMiB, 0, handle, 0), CUDA_SUCCESS);
  CUmemGenericAllocationHandle again = 0;
  void* const mapped = reinterpret_cast<void*>(kAddress);
  ASSERT_EQ(cuMemRetainAllocationHandle(&again, mapped), CUDA_SUCCESS);
  ASSERT_EQ(cuMemRelease(handle), CUDA_SUCCESS);
  ASSERT_EQ(cuMemUnmap(kAddress, 2 * kMiB), CUDA_SUCCESS);
  EXPECT_EQ(share_.used(), 2 * kMiB);
  ASSERT_EQ(cuMemRelease(again), CUDA_SUCCESS);
  EXPECT_EQ(share_.used(), 0u);
}

TEST_F(PhysicalMemory, FailedCallsOfTheDriverChangeNothing) {
  const auto handle = create(2 * kMiB);
  share_.fake.fail["cuMemMap"] = CUDA_ERROR_UNKNOWN;
  EXPECT_EQ(cuMemMap(kAddress, 2 * kMiB, 0, handle, 0), CUDA_ERROR_UNKNOWN);
  ASSERT_EQ(cuMemMap(kAddress, 2 * kMiB, 0, handle, 0), CUDA_SUCCESS);
  share_.fake.fail["cuMemUnmap"] = CUDA_ERROR_UNKNOWN;
  EXPECT_EQ(cuMemUnmap(kAddress, 2 * kMiB), CUDA_ERROR_UNKNOWN);
  ASSERT_EQ(cuMemUnmap(kAddress, 2 * kMiB), CUDA_SUCCESS);
  share_.fake.fail["cuMemRelease"] = CUDA_ERROR_UNKNOWN;
  EXPECT_EQ(cuMemRelease(handle), CUDA_ERROR_UNKNOWN);
  EXPECT_EQ(share_.used(), 2 * kMiB);
  ASSERT_EQ(cuMemRelease(handle), CUDA_SUCCESS);
  EXPECT_EQ(share_.used(), 0u);
}

TEST_F(PhysicalMemory, AMulticastObjectKeepsWhatIsBoundToIt) {
  const auto handle = create(2 * kMiB);
  constexpr CUmemGenericAllocationHandle kMulticast = 77;
  ASSERT_EQ(cuMulticastBindMem(kMulticast, 0, handle, 0, 2 * kMiB, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemRelease(handle), CUDA_SUCCESS);
  EXPECT_EQ(share_.used(), 2 * kMiB);
  ASSERT_EQ(cuMulticastUnbind(kMulticast, 1, 0, 2 * kMiB), CUDA_SUCCESS);  // another GPU's part
  EXPECT_EQ(share_.used(), 2 * kMiB);
  ASSERT_EQ(cuMulticastUnbind(kMulticast, 0, 0, 2 * kMiB), CUDA_SUCCESS);
  EXPECT_EQ(share_.used(), 0u);
}

TEST_F(PhysicalMemory, BoundByAddressItIsKeptToo) {
  const auto handle = create(2 * kMiB);
  ASSERT_EQ(cuMemMap(kAddress, 2 * kMiB, 0, handle, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMulticastBindAddr(78, 0, kAddress, 2 * kMiB, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuMemRelease(handle), CUDA_SUCCESS);
  ASSERT_EQ(cuMemUnmap(kAddress, 2 * kMiB), CUDA_SUCCESS);
  EXPECT_EQ(share_.used(), 2 * kMiB);
  ASSERT_EQ(cuMulticastUnbind(78, 0, 0, 2 * kMiB), CUDA_SUCCESS);
  EXPECT_EQ(share_.used(), 0u);
}

TEST_F(PhysicalMemory, ASparseArrayKeepsItsTiles) {
  const auto handle = create(2 * kMiB);
  CUDA_ARRAY3D_DESCRIPTOR wanted{1024, 1024, 0, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_SPARSE};
  CUarray array = nullptr;
  ASSERT_EQ(cuArray3DCreate_v2(&array, &wanted), CUDA_SUCCESS);
  CUarrayMapInfo tile{};
  tile.array = array;
  tile.operation = 1;
  tile.handle = handle;
  ASSERT_EQ(cuMemMapArrayAsync(&tile, 1, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(cuMemRelease(handle), CUDA_SUCCESS);
  EXPECT_EQ(share_.used(), 2 * kMiB);
  ASSERT_EQ(cuArrayDestroy(array), CUDA_SUCCESS);
  EXPECT_EQ(share_.used(), 0u);
}

TEST_F(PhysicalMemory, ThreadsEndAtZeroInAnyOrder) {
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t)
    threads.emplace_back([this, t] {
      for (unsigned i = 0; i < 300; ++i) {
        const auto handle = create(2 * kMiB);
        const CUdeviceptr at = kAddress * (t + 1);
        EXPECT_EQ(cuMemMap(at, 2 * kMiB, 0, handle, 0), CUDA_SUCCESS);
        const auto release = [&] { EXPECT_EQ(cuMemRelease(handle), CUDA_SUCCESS); };
        if (i % 2 == 0) release();
        EXPECT_EQ(cuMemUnmap(at, 2 * kMiB), CUDA_SUCCESS);
        if (i % 2 != 0) release();
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(share_.used(), 0u);
  EXPECT_EQ(share_.fake.taken_bytes(), 0u);
}

}  // namespace
}  // namespace aliquot::interposer
