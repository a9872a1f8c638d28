// Every version and stream form of a guarded call is guarded: older and per-thread forms take and
// give back as the plain newest ones do, which the other tests hold in detail.
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "interposer/holdings.h"
#include "interposer/testing/share.h"

namespace aliquot::interposer {
namespace {

using testing::Share;
constexpr std::uint64_t kMiB = Share::kMiB;

class Versions : public ::testing::Test {
 protected:
  Versions() {
    share_.lease.grant.gpu[0].context_overhead_bytes = kMiB;
    EXPECT_NE(context_ = share_.begin(), nullptr);
    EXPECT_EQ(cuMemAlloc_v2(&address_, kMiB), CUDA_SUCCESS);
  }
  // From here on nothing fits any more.
  void fill() { share_.lease.grant.gpu[0].memory_limit_bytes = share_.used(); }
  CUgraph graph_with_memory() {
    CUgraph graph = nullptr;
    CUgraphNode node = nullptr;
    CUDA_MEM_ALLOC_NODE_PARAMS params{};
    params.pool.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    params.bytes = kMiB;
    EXPECT_EQ(cuGraphCreate(&graph, 0), CUDA_SUCCESS);
    EXPECT_EQ(cuGraphAddMemAllocNode(&node, graph, nullptr, 0, &params), CUDA_SUCCESS);
    return graph;
  }
  Share share_{64 * kMiB};
  CUcontext context_ = nullptr;
  CUdeviceptr address_ = 0;
};

// Without its guard the fake driver would say yes to each.
TEST_F(Versions, ThatAllocateAreRefusedInAFullShare) {
  const std::string path = ::testing::TempDir() + "aliquot_image_" + std::to_string(getpid());
  std::ofstream(path) << "an image";
  const CUgraph graph = graph_with_memory();
  fill();
  CUdeviceptr_v1 old_address = 0;
  unsigned int old_pitch = 0;
  EXPECT_EQ(cuMemAlloc(&old_address, 512), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuMemAllocPitch(&old_address, &old_pitch, 512, 1, 4), CUDA_ERROR_OUT_OF_MEMORY);
  CUdeviceptr address = 0;
  EXPECT_EQ(cuMemAllocAsync_ptsz(&address, 512, nullptr), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuMemAllocFromPoolAsync_ptsz(&address, 512, nullptr, nullptr),
            CUDA_ERROR_OUT_OF_MEMORY);
  CUarray array = nullptr;
  const CUDA_ARRAY_DESCRIPTOR_v1 flat{64, 64, CU_AD_FORMAT_FLOAT, 1};
  const CUDA_ARRAY3D_DESCRIPTOR_v1 deep{64, 64, 64, CU_AD_FORMAT_FLOAT, 1, 0};
  EXPECT_EQ(cuArrayCreate(&array, &flat), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuArray3DCreate(&array, &deep), CUDA_ERROR_OUT_OF_MEMORY);
  CUcontext context = nullptr;
  EXPECT_EQ(cuCtxCreate(&context, 0, 0), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuCtxCreate_v3(&context, nullptr, 0, 0, 0), CUDA_ERROR_OUT_OF_MEMORY);
  CUmodule module = nullptr;
  CUlibrary library = nullptr;
  EXPECT_EQ(cuModuleLoad(&module, path.c_str()), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuModuleLoadDataEx(&module, "ptx", 0, nullptr, nullptr), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuModuleLoadFatBinary(&module, "ptx"), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuLibraryLoadFromFile(&library, path.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0),
            CUDA_ERROR_OUT_OF_MEMORY);
  CUgraphExec instance = nullptr;
  CUDA_GRAPH_INSTANTIATE_PARAMS params{};
  EXPECT_EQ(cuGraphInstantiate(&instance, graph, nullptr, nullptr, 0), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuGraphInstantiate_v2(&instance, graph, nullptr, nullptr, 0), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuGraphInstantiateWithParams(&instance, graph, &params), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuGraphInstantiateWithParams_ptsz(&instance, graph, &params), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(share_.used(), 2 * kMiB);
  std::remove(path.c_str());
}

TEST_F(Versions, ThatFreeGiveBack) {
  // 32 bits of a 64-bit address name nothing of ours.
  EXPECT_EQ(cuMemFree(static_cast<CUdeviceptr_v1>(address_)), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(share_.used(), 2 * kMiB);
  CUdeviceptr_v1 short_address = 0;
  ASSERT_EQ(cuMemAlloc(&short_address, kMiB), CUDA_SUCCESS);
  EXPECT_EQ(share_.used(), 3 * kMiB);
  ASSERT_EQ(cuMemFree(short_address), CUDA_SUCCESS);
  EXPECT_EQ(share_.used(), 2 * kMiB);
  CUdeviceptr pooled = 0;
  ASSERT_EQ(cuMemAllocAsync(&pooled, kMiB, nullptr), CUDA_SUCCESS);
  const std::uint64_t with_pool = share_.used();
  ASSERT_EQ(cuMemFreeAsync_ptsz(pooled, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(held_pointers().find(pooled).name, 0u);
  EXPECT_EQ(share_.used(), with_pool);  // the pool keeps it
  ASSERT_EQ(cuCtxDestroy(context_), CUDA_SUCCESS);
  EXPECT_EQ(share_.used(), with_pool - 2 * kMiB);
}

TEST_F(Versions, ThatEndPrimaryContextsGiveBack) {
  CUcontext primary = nullptr;
  ASSERT_EQ(cuDevicePrimaryCtxRetain(&primary, 0), CUDA_SUCCESS);
  EXPECT_EQ(share_.used(), 3 * kMiB);
  ASSERT_EQ(cuDevicePrimaryCtxRelease(0), CUDA_SUCCESS);
  EXPECT_EQ(share_.used(), 2 * kMiB);
  ASSERT_EQ(cuDevicePrimaryCtxRetain(&primary, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuDevicePrimaryCtxReset(0), CUDA_SUCCESS);
  EXPECT_EQ(share_.used(), 2 * kMiB);
}

TEST_F(Versions, DetachingTheLastUserEndsAContext) {
  const std::uint64_t before = share_.used();
  share_.fake.other_users = 1;
  ASSERT_EQ(cuCtxDetach(context_), CUDA_SUCCESS);
  EXPECT_EQ(share_.used(), before);
  ASSERT_EQ(cuCtxDetach(context_), CUDA_SUCCESS);
  EXPECT_EQ(share_.used(), 0u);
}

TEST_F(Versions, AContextIsNotTakenForEndedBecauseTheQuestionFails) {
  const std::uint64_t before = share_.used();
  share_.fake.other_users = 1;
  share_.fake.fail["cuCtxGetApiVersion"] = CUDA_ERROR_UNKNOWN;
  ASSERT_EQ(cuCtxDetach(context_), CUDA_SUCCESS);
  EXPECT_EQ(share_.used(), before);
  EXPECT_EQ(held_pointers().find(address_).name, address_);
  share_.fake.fail["cuCtxDetach"] = CUDA_ERROR_UNKNOWN;
  ASSERT_EQ(cuCtxDetach(context_), CUDA_ERROR_UNKNOWN);
  EXPECT_EQ(share_.used(), before);
  ASSERT_EQ(cuCtxDetach(context_), CUDA_SUCCESS);
  EXPECT_EQ(share_.used(), 0u);
}

TEST_F(Versions, OfAddressBindingsAndTilesKeepTheMemory) {
  CUmemAllocationProp properties{};
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  const std::uint64_t before = share_.used();
  for (int form = 0; form < 3; ++form) {
    constexpr CUdeviceptr kAt = 0x1'0000'0000;
    constexpr CUmemGenericAllocationHandle kMulticast = 77;
    CUmemGenericAllocationHandle handle = 0;
    ASSERT_EQ(cuMemCreate(&handle, 2 * kMiB, &properties, 0), CUDA_SUCCESS);
    CUarrayMapInfo tile{};
    tile.array = reinterpret_cast<CUarray>(0x7000);
    tile.operation = 1;
    tile.handle = handle;
    ASSERT_EQ(cuMemMap(kAt, 2 * kMiB, 0, handle, 0), CUDA_SUCCESS);
    const CUresult bound = form == 0
                               ? cuMulticastBindMem_v2(kMulticast, 0, 0, handle, 0, 2 * kMiB, 0)
                           : form == 1 ? cuMulticastBindAddr_v2(kMulticast, 0, 0, kAt, 2 * kMiB, 0)
                                       : cuMemMapArrayAsync_ptsz(&tile, 1, nullptr);
    ASSERT_EQ(bound, CUDA_SUCCESS);
    ASSERT_EQ(cuMemUnmap(kAt, 2 * kMiB), CUDA_SUCCESS);
    ASSERT_EQ(cuMemRelease(handle), CUDA_SUCCESS);
    EXPECT_EQ(share_.used(), before + 2 * kMiB) << form;
    cuMulticastUnbind(kMulticast, 0, 0, 2 * kMiB);
  }
}

TEST_F(Versions, OfTheViewWith32BitsSayAtMostWhatFits) {
  share_.lease.grant.gpu[0].memory_limit_bytes = wire::kUnlimitedBytes;
  unsigned int free = 0, total = 0;
  ASSERT_EQ(cuMemGetInfo(&free, &total), CUDA_SUCCESS);
  ASSERT_EQ(cuDeviceTotalMem(&total, 0), CUDA_SUCCESS);
  // The fake's old forms answer 0, which bounds the share too.
  EXPECT_EQ(free, 0u);
  EXPECT_EQ(total, 0u);
}

}  // namespace
}  // namespace aliquot::interposer
