// Arrays, imported memory, modules, libraries and graphs.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "interposer/testing/share.h"

namespace aliquot::interposer {
namespace {

using testing::Share;
using wire::Kind;
constexpr std::uint64_t kMiB = Share::kMiB;

class Objects : public ::testing::Test {
 protected:
  Objects() { EXPECT_NE(share_.begin(), nullptr); }
  Share share_{64 * kMiB};
};

CUDA_ARRAY3D_DESCRIPTOR cube(std::size_t side, unsigned flags = 0) {
  return {side, side, side, CU_AD_FORMAT_FLOAT, 1, flags};
}

TEST_F(Objects, ArraysCostWhatTheDriversRequirementSays) {
  share_.fake.array_overhead_bytes = 12345;
  CUDA_ARRAY_DESCRIPTOR wanted{1024, 512, CU_AD_FORMAT_FLOAT, 1};
  CUarray array = nullptr;
  ASSERT_EQ(cuArrayCreate_v2(&array, &wanted), CUDA_SUCCESS);
  EXPECT_EQ(share_.used(), 1024u * 512 * 4 + 12345);
  EXPECT_EQ(share_.fake.taken_bytes(), share_.used());
  EXPECT_EQ(share_.kind(Kind::kArray), share_.used());
  ASSERT_EQ(cuArrayDestroy(array), CUDA_SUCCESS);
  EXPECT_EQ(share_.used(), 0u);
}

TEST_F(Objects, WithoutARequirementTheElementsAreTheEstimate) {
  share_.fake.fail["cuArrayGetMemoryRequirements"] = CUDA_ERROR_NOT_SUPPORTED;
  const CUDA_ARRAY3D_DESCRIPTOR wanted = cube(64);
  CUarray array = nullptr;
  ASSERT_EQ(cuArray3DCreate_v2(&array, &wanted), CUDA_SUCCESS);
  EXPECT_EQ(share_.used(), 64u * 64 * 64 * 4);
}

TEST_F(Objects, ArraysWithoutMemoryCostNothing) {
  CUarray array = nullptr;
  for (const unsigned flags : {CUDA_ARRAY3D_SPARSE, CUDA_ARRAY3D_DEFERRED_MAPPING}) {
    const CUDA_ARRAY3D_DESCRIPTOR wanted = cube(4096, flags);
    EXPECT_EQ(cuArray3DCreate_v2(&array, &wanted), CUDA_SUCCESS);
  }
  EXPECT_EQ(share_.used(), 0u);
}

TEST_F(Objects, ArraysAreRefusedAboveTheLimitAndRolledBack) {
  CUarray array = nullptr;
  CUmipmappedArray mipmap = nullptr;
  CUDA_ARRAY3D_DESCRIPTOR wanted = cube(1024);
  EXPECT_EQ(cuArray3DCreate_v2(&array, &wanted), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuMipmappedArrayCreate(&mipmap, &wanted, 3), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(array, nullptr);
  CUDA_ARRAY_DESCRIPTOR flat{64, 64, CU_AD_FORMAT_FLOAT, 1};
  share_.fake.fail["cuArrayCreate_v2"] = CUDA_ERROR_UNKNOWN;
  EXPECT_EQ(cuArrayCreate_v2(&array, &flat), CUDA_ERROR_UNKNOWN);
  EXPECT_EQ(share_.used(), 0u);
  EXPECT_EQ(share_.fake.taken_bytes(), 0u);
}

TEST_F(Objects, MipmapsAreChargedAndFreed) {
  const CUDA_ARRAY3D_DESCRIPTOR wanted = cube(64);
  CUmipmappedArray mipmap = nullptr;
  ASSERT_EQ(cuMipmappedArrayCreate(&mipmap, &wanted, 3), CUDA_SUCCESS);
  EXPECT_EQ(share_.used(), share_.fake.taken_bytes());
  EXPECT_GE(share_.used(), 64u * 64 * 64 * 4);
  ASSERT_EQ(cuMipmappedArrayDestroy(mipmap), CUDA_SUCCESS);
  EXPECT_EQ(share_.used(), 0u);
}

TEST_F(Objects, ImportedMemoryIsChargedToTheImporter) {
  CUDA_EXTERNAL_MEMORY_HANDLE_DESC description{};
  description.bytes = 3 * kMiB;
  CUexternalMemory memory = nullptr;
  ASSERT_EQ(cuImportExternalMemory(&memory, &description), CUDA_SUCCESS);
  EXPECT_EQ(share_.used(), 3 * kMiB);
  ASSERT_EQ(cuDestroyExternalMemory(memory), CUDA_SUCCESS);
  EXPECT_EQ(share_.used(), 0u);
  description.bytes = 65 * kMiB;
  EXPECT_EQ(cuImportExternalMemory(&memory, &description), CUDA_ERROR_OUT_OF_MEMORY);
}

TEST_F(Objects, ModulesAndLibrariesCostTheSizeOfTheirImage) {
  const std::string ptx(5000, 'x');
  CUmodule module = nullptr;
  CUlibrary library = nullptr;
  ASSERT_EQ(cuModuleLoadData(&module, ptx.c_str()), CUDA_SUCCESS);
  EXPECT_EQ(share_.used(), 5120u);
  ASSERT_EQ(cuLibraryLoadData(&library, ptx.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0),
            CUDA_SUCCESS);
  EXPECT_EQ(share_.kind(Kind::kModule), 2 * 5120u);
  ASSERT_EQ(cuModuleUnload(module), CUDA_SUCCESS);
  ASSERT_EQ(cuLibraryUnload(library), CUDA_SUCCESS);
  EXPECT_EQ(share_.used(), 0u);
}

TEST_F(Objects, AModuleThatDoesNotLoadCostsNothing) {
  CUmodule module = nullptr;
  share_.fake.fail["cuModuleLoadData"] = CUDA_ERROR_INVALID_PTX;
  EXPECT_EQ(cuModuleLoadData(&module, "ptx"), CUDA_ERROR_INVALID_PTX);
  const std::string large(65 * kMiB, 'x');
  EXPECT_EQ(cuModuleLoadData(&module, large.c_str()), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(module, nullptr);
  EXPECT_EQ(share_.used(), 0u);
}

class Graphs : public Objects {
 protected:
  CUgraph graph_with(std::uint64_t bytes, int type = CU_MEM_LOCATION_TYPE_DEVICE) {
    CUgraph graph = nullptr;
    EXPECT_EQ(cuGraphCreate(&graph, 0), CUDA_SUCCESS);
    CUDA_MEM_ALLOC_NODE_PARAMS params{};
    params.pool.location = {type, 0};
    params.bytes = bytes;
    CUgraphNode node = nullptr;
    EXPECT_EQ(cuGraphAddMemAllocNode(&node, graph, nullptr, 0, &params), CUDA_SUCCESS);
    return graph;
  }
  CUgraphExec instance_ = nullptr;
};

TEST_F(Graphs, TheirAllocationsAreChargedWhenInstantiated) {
  CUgraph graph = graph_with(3 * kMiB);
  EXPECT_EQ(share_.used(), 0u);
  ASSERT_EQ(cuGraphInstantiateWithFlags(&instance_, graph, 0), CUDA_SUCCESS);
  EXPECT_EQ(share_.used(), 4 * kMiB);
  EXPECT_EQ(share_.kind(Kind::kGraph), 4 * kMiB);
  ASSERT_EQ(cuGraphExecDestroy(instance_), CUDA_SUCCESS);
  EXPECT_EQ(share_.used(), 0u);
}

TEST_F(Graphs, WhatTheDriverKeepsAfterThemStaysChargedUntilTrimmed) {
  ASSERT_EQ(cuGraphInstantiateWithFlags(&instance_, graph_with(4 * kMiB), 0), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphLaunch(instance_, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(share_.used(), 4 * kMiB);
  ASSERT_EQ(cuGraphExecDestroy(instance_), CUDA_SUCCESS);
  EXPECT_EQ(share_.used(), 4 * kMiB);
  ASSERT_EQ(cuDeviceGraphMemTrim(0), CUDA_SUCCESS);
  EXPECT_EQ(share_.used(), 0u);
}

TEST_F(Graphs, WhatCannotBeLookedAtIsNotInstantiated) {
  const CUgraph graph = graph_with(4 * kMiB);
  for (const char* call :
       {"cuGraphGetNodes", "cuGraphNodeGetType", "cuGraphMemAllocNodeGetParams"}) {
    share_.fake.fail[call] = CUDA_ERROR_UNKNOWN;
    EXPECT_EQ(cuGraphInstantiateWithFlags(&instance_, graph, 0), CUDA_ERROR_UNKNOWN) << call;
    share_.fake.fail.erase(call);
  }
  EXPECT_EQ(share_.fake.calls["cuGraphInstantiateWithFlags"], 0u);
  EXPECT_EQ(share_.kind(Kind::kGraph), 0u);
}

TEST_F(Graphs, AreRefusedAboveTheLimitAndRolledBack) {
  EXPECT_EQ(cuGraphInstantiateWithFlags(&instance_, graph_with(65 * kMiB), 0),
            CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(share_.fake.calls["cuGraphInstantiateWithFlags"], 0u);
  share_.fake.fail["cuGraphInstantiateWithFlags"] = CUDA_ERROR_UNKNOWN;
  EXPECT_EQ(cuGraphInstantiateWithFlags(&instance_, graph_with(2 * kMiB), 0), CUDA_ERROR_UNKNOWN);
  EXPECT_EQ(share_.used(), 0u);
  ASSERT_EQ(cuGraphInstantiateWithFlags(&instance_, graph_with(2 * kMiB), 0), CUDA_SUCCESS);
  share_.fake.fail["cuGraphExecDestroy"] = CUDA_ERROR_UNKNOWN;
  EXPECT_EQ(cuGraphExecDestroy(instance_), CUDA_ERROR_UNKNOWN);
  EXPECT_EQ(share_.used(), 2 * kMiB);
}

TEST_F(Graphs, AllocationsOnTheHostCostNothing) {
  ASSERT_EQ(
      cuGraphInstantiateWithFlags(&instance_, graph_with(3 * kMiB, CU_MEM_LOCATION_TYPE_HOST), 0),
      CUDA_SUCCESS);
  EXPECT_EQ(share_.used(), 0u);
}

}  // namespace
}  // namespace aliquot::interposer
