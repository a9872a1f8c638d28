#include <gtest/gtest.h>

#include <functional>
#include <thread>
#include <vector>

#include "interposer/testing/share.h"

namespace aliquot::interposer {
namespace {

using testing::Share;
using wire::Kind;
constexpr std::uint64_t kMiB = Share::kMiB;

class Pools : public ::testing::Test {
 protected:
  Pools() { EXPECT_NE(share_.begin(), nullptr); }
  CUmemoryPool pool_on_device() {
    CUmemPoolProps properties{};
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    CUmemoryPool pool = nullptr;
    EXPECT_EQ(cuMemPoolCreate(&pool, &properties), CUDA_SUCCESS);
    return pool;
  }
  Share share_{256 * kMiB, 2};
  CUdeviceptr address_ = 0;
};

TEST_F(Pools, AreChargedByWhatTheDriverKeepsNotByWhatWasAsked) {
  ASSERT_EQ(cuMemAllocAsync(&address_, 1000, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(share_.used(), 32 * kMiB);  // the fake's pools grow by blocks
  EXPECT_EQ(share_.kind(Kind::kPool), 32 * kMiB);
  CUdeviceptr second = 0;
  ASSERT_EQ(cuMemAllocAsync(&second, 1000, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(share_.used(), 32 * kMiB);
}

TEST_F(Pools, KeepTheirChargeAfterAFreeUntilTrimmed) {
  const CUmemoryPool pool = pool_on_device();
  ASSERT_EQ(cuMemAllocFromPoolAsync(&address_, kMiB, pool, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(cuMemFreeAsync(address_, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(share_.used(), 32 * kMiB);
  ASSERT_EQ(cuMemPoolTrimTo(pool, 0), CUDA_SUCCESS);
  EXPECT_EQ(share_.used(), 0u);
}

TEST_F(Pools, ManyBalancedRoundsEndAtZero) {
  const CUmemoryPool pool = pool_on_device();
  for (int round = 0; round < 1000; ++round) {
    ASSERT_EQ(cuMemAllocFromPoolAsync(&address_, (round % 40 + 1) * kMiB, pool, nullptr),
              CUDA_SUCCESS);
    ASSERT_EQ(round % 2 == 0 ? cuMemFreeAsync(address_, nullptr) : cuMemFree_v2(address_),
              CUDA_SUCCESS);
  }
  ASSERT_EQ(cuMemPoolTrimTo(pool, 0), CUDA_SUCCESS);
  EXPECT_EQ(share_.used(), 0u);
  EXPECT_EQ(share_.fake.taken_bytes(), 0u);
}

TEST_F(Pools, AreChargedRightAsSoonAsWorkWasWaitedFor) {
  const CUmemoryPool pool = pool_on_device();
  CUdeviceptr kept = 0;
  ASSERT_EQ(cuMemAllocFromPoolAsync(&kept, kMiB, pool, nullptr), CUDA_SUCCESS);
  const std::function<CUresult()> waits[] = {
      [] { return cuStreamSynchronize(nullptr); }, [] { return cuStreamSynchronize_ptsz(nullptr); },
      [] { return cuEventSynchronize(nullptr); }, [] { return cuCtxSynchronize(); },
      [] { return cuCtxSynchronize_v2(nullptr); }};
  for (const auto& wait : waits) {
    ASSERT_EQ(cuMemAllocFromPoolAsync(&address_, 80 * kMiB, pool, nullptr), CUDA_SUCCESS);
    ASSERT_EQ(cuMemFreeAsync(address_, nullptr), CUDA_SUCCESS);
    EXPECT_GT(share_.used(), 80 * kMiB);
    ASSERT_EQ(wait(), CUDA_SUCCESS);
    EXPECT_EQ(share_.used(), kMiB);
    EXPECT_EQ(share_.fake.taken_bytes(), kMiB);
  }
}

TEST_F(Pools, AWaitOfAProgramWithoutPoolsAsksTheDriverNothing) {
  ASSERT_EQ(cuStreamSynchronize(nullptr), CUDA_SUCCESS);
  EXPECT_EQ(share_.fake.calls["cuMemPoolGetAttribute"], 0u);
}

TEST_F(Pools, WhatTheyKeptIsReadAnewBeforeARefusal) {
  const CUmemoryPool pool = pool_on_device();
  ASSERT_EQ(cuMemAllocFromPoolAsync(&address_, 200 * kMiB, pool, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(cuMemFreeAsync(address_, nullptr), CUDA_SUCCESS);
  {
    const Inside past_us;  // as a stream's synchronisation trims, which no call of ours sees
    ASSERT_EQ(real::cuMemPoolTrimTo(pool, 0), CUDA_SUCCESS);
  }
  EXPECT_EQ(cuMemAlloc_v2(&address_, 250 * kMiB), CUDA_SUCCESS);
  EXPECT_EQ(share_.used(), 250 * kMiB);
}

TEST_F(Pools, AreRefusedWhenTheyMightGrowAboveTheLimit) {
  EXPECT_EQ(cuMemAllocAsync(&address_, 300 * kMiB, nullptr), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(share_.fake.calls["cuMemAllocAsync"], 0u);
  EXPECT_EQ(share_.used(), 0u);
}

TEST_F(Pools, ThatGrewAboveTheLimitAreUndone) {
  share_.fake.pool_block_bytes = 512 * kMiB;
  address_ = 0xdead;
  EXPECT_EQ(cuMemAllocAsync(&address_, kMiB, nullptr), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(address_, 0xdeadu);
  EXPECT_EQ(share_.fake.taken_bytes(), 0u);
  EXPECT_EQ(share_.used(), 0u);
}

TEST_F(Pools, FailuresOfTheDriverRollBack) {
  share_.fake.fail["cuMemAllocAsync"] = CUDA_ERROR_UNKNOWN;
  EXPECT_EQ(cuMemAllocAsync(&address_, kMiB, nullptr), CUDA_ERROR_UNKNOWN);
  share_.fake.fail["cuDeviceGetMemPool"] = CUDA_ERROR_NOT_SUPPORTED;
  EXPECT_EQ(cuMemAllocAsync(&address_, kMiB, nullptr), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(share_.used(), 0u);
  ASSERT_EQ(cuMemAllocAsync(&address_, kMiB, nullptr), CUDA_SUCCESS);
  share_.fake.fail["cuMemFreeAsync"] = CUDA_ERROR_UNKNOWN;
  EXPECT_EQ(cuMemFreeAsync(address_, nullptr), CUDA_ERROR_UNKNOWN);
  EXPECT_EQ(cuMemFreeAsync(address_, nullptr), CUDA_SUCCESS);
}

TEST_F(Pools, OnTheHostCostNothing) {
  CUmemPoolProps properties{};
  properties.location = {CU_MEM_LOCATION_TYPE_HOST, 0};
  CUmemoryPool pool = nullptr;
  ASSERT_EQ(cuMemPoolCreate(&pool, &properties), CUDA_SUCCESS);
  EXPECT_EQ(cuMemAllocFromPoolAsync(&address_, 1024 * kMiB, pool, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(share_.used(), 0u);
}

TEST_F(Pools, ThatAreDestroyedStayChargedForWhatIsStillUsed) {
  const CUmemoryPool pool = pool_on_device();
  ASSERT_EQ(cuMemAllocFromPoolAsync(&address_, 3 * kMiB, pool, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(cuMemPoolDestroy(pool), CUDA_SUCCESS);
  EXPECT_EQ(share_.used(), 3 * kMiB);
  ASSERT_EQ(cuMemFreeAsync(address_, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(share_.used(), 0u);
}

TEST_F(Pools, WhileCapturingAnAllocationIsANodeAndCostsNothing) {
  ASSERT_EQ(cuStreamBeginCapture_v2(nullptr, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuMemAllocAsync(&address_, kMiB, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(share_.used(), 0u);
  EXPECT_EQ(share_.fake.calls["cuMemPoolGetAttribute"], 0u);
}

TEST_F(Pools, ThreadsOnOnePoolEndExact) {
  const CUmemoryPool pool = pool_on_device();
  share_.fake.pool_block_bytes = 2 * kMiB;
  CUcontext context = nullptr;
  cuCtxGetCurrent(&context);
  std::vector<std::thread> threads;
  std::atomic<int> refused{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      cuCtxSetCurrent(context);
      for (int i = 0; i < 500; ++i) {
        CUdeviceptr mine = 0;
        if (cuMemAllocFromPoolAsync(&mine, (t + 1) * kMiB, pool, nullptr) != CUDA_SUCCESS)
          ++refused;
        else
          cuMemFreeAsync(mine, nullptr);
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(refused, 0);
  EXPECT_EQ(share_.used(), share_.fake.taken_bytes());
  ASSERT_EQ(cuMemPoolTrimTo(pool, 0), CUDA_SUCCESS);
  EXPECT_EQ(share_.used(), 0u);
}

}  // namespace
}  // namespace aliquot::interposer
