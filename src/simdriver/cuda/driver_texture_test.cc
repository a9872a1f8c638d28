// Texture and surface objects, and batches of copies of three dimensions.
#include <cstdint>
#include <cstring>
#include <numeric>
#include <vector>

#include "simdriver/cuda/test_driver.h"

namespace aliquot::simdriver::test {
namespace {

[[maybe_unused]] const auto* const kMachine = machine_for_tests("a100x1");

constexpr int kFloat = 0x20;  // CU_AD_FORMAT_FLOAT

class Textures : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(CU(cuInit)(0), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuCtxCreate_v2)(&context_, 0, 0), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuMemAlloc_v2)(&memory_, 1 << 20), CUDA_SUCCESS);
  }
  void TearDown() override { CU(cuCtxDestroy_v2)(context_); }
  CUarray array(unsigned flags = 0) {
    CUDA_ARRAY3D_DESCRIPTOR shape{};
    shape.width = 16;
    shape.height = 8;
    shape.format = kFloat;
    shape.channels = 1;
    shape.flags = flags;
    CUarray made = nullptr;
    EXPECT_EQ(CU(cuArray3DCreate_v2)(&made, &shape), CUDA_SUCCESS);
    return made;
  }
  CUDA_RESOURCE_DESC linear(CUdeviceptr address, std::size_t bytes) {
    CUDA_RESOURCE_DESC resource{};
    resource.type = 2;
    resource.linear = {address, kFloat, 1, bytes};
    return resource;
  }
  CUresult make(const CUDA_RESOURCE_DESC& resource, const CUDA_RESOURCE_VIEW_DESC* part = nullptr) {
    CUDA_TEXTURE_DESC how{};
    how.filter_mode = 1;
    return CU(cuTexObjectCreate)(&texture_, &resource, &how, part);
  }

  CUcontext context_ = nullptr;
  CUdeviceptr memory_ = 0;
  CUtexObject texture_ = 0;
};

TEST_F(Textures, TellWhatTheyWereMadeOfUntilTheyAreDestroyed) {
  ASSERT_EQ(make(linear(memory_, 4096)), CUDA_SUCCESS);
  CUDA_RESOURCE_DESC resource{};
  CUDA_TEXTURE_DESC how{};
  CUDA_RESOURCE_VIEW_DESC part{};
  EXPECT_EQ(CU(cuTexObjectGetResourceDesc)(&resource, texture_), CUDA_SUCCESS);
  EXPECT_EQ(resource.linear.address, memory_);
  EXPECT_EQ(CU(cuTexObjectGetTextureDesc)(&how, texture_), CUDA_SUCCESS);
  EXPECT_EQ(how.filter_mode, 1);
  EXPECT_EQ(CU(cuTexObjectGetResourceViewDesc)(&part, texture_), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CU(cuTexObjectDestroy)(texture_), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuTexObjectDestroy)(texture_), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(Textures, OfAnArrayCanBeOfAPartOfIt) {
  CUDA_RESOURCE_DESC resource{};
  resource.array = array();
  CUDA_RESOURCE_VIEW_DESC part{};
  part.width = 16;
  part.height = 8;
  ASSERT_EQ(make(resource, &part), CUDA_SUCCESS);
  CUDA_RESOURCE_VIEW_DESC told{};
  EXPECT_EQ(CU(cuTexObjectGetResourceViewDesc)(&told, texture_), CUDA_SUCCESS);
  EXPECT_EQ(told.height, 8u);
  EXPECT_EQ(make(linear(memory_, 4096), &part), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Textures, AMipmapsLevelsAreHalvesInOneMemory) {
  CUDA_ARRAY3D_DESCRIPTOR shape{};
  shape.width = 1024;
  shape.height = 512;
  shape.format = kFloat;
  shape.channels = 1;
  const std::uint64_t before = free_bytes();
  CUmipmappedArray mipmap = nullptr;
  EXPECT_EQ(CU(cuMipmappedArrayCreate)(&mipmap, &shape, 0), CUDA_ERROR_INVALID_VALUE);
  ASSERT_EQ(CU(cuMipmappedArrayCreate)(&mipmap, &shape, 3), CUDA_SUCCESS);
  EXPECT_EQ(before - free_bytes(), 4u << 20);  // 2 MiB, and a quarter and a sixteenth of it

  std::vector<CUarray> levels(3);
  for (unsigned i = 0; i < 3; ++i) {
    ASSERT_EQ(CU(cuMipmappedArrayGetLevel)(&levels[i], mipmap, i), CUDA_SUCCESS);
    CUDA_ARRAY_DESCRIPTOR told{};
    EXPECT_EQ(CU(cuArrayGetDescriptor_v2)(&told, levels[i]), CUDA_SUCCESS);
    EXPECT_EQ(told.width, 1024u >> i);
    EXPECT_EQ(told.height, 512u >> i);
    // Each level's last element is its own.
    const float mark = 1.0F + static_cast<float>(i);
    EXPECT_EQ(CU(cuMemcpyHtoA_v2)(levels[i], (1024u >> i) * 4 - 4, &mark, 4), CUDA_SUCCESS);
  }
  for (unsigned i = 0; i < 3; ++i) {
    float mark = 0;
    EXPECT_EQ(CU(cuMemcpyAtoH_v2)(&mark, levels[i], (1024u >> i) * 4 - 4, 4), CUDA_SUCCESS);
    EXPECT_EQ(mark, 1.0F + static_cast<float>(i));
  }
  CUarray none = nullptr;
  EXPECT_EQ(CU(cuMipmappedArrayGetLevel)(&none, mipmap, 3), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CU(cuArrayDestroy)(levels[0]), CUDA_ERROR_ARRAY_IS_MAPPED);
  // Only of one whose memory comes later.
  CUDA_ARRAY_MEMORY_REQUIREMENTS needs{};
  EXPECT_EQ(CU(cuMipmappedArrayGetMemoryRequirements)(&needs, mipmap, 0), CUDA_ERROR_INVALID_VALUE);

  EXPECT_EQ(CU(cuMipmappedArrayDestroy)(mipmap), CUDA_SUCCESS);
  EXPECT_EQ(free_bytes(), before);
  EXPECT_EQ(CU(cuMipmappedArrayDestroy)(mipmap), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(CU(cuMipmappedArrayGetLevel)(&none, mipmap, 0), CUDA_ERROR_INVALID_HANDLE);
  CUDA_ARRAY_DESCRIPTOR told{};
  EXPECT_EQ(CU(cuArrayGetDescriptor_v2)(&told, levels[0]), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(Textures, AMipmapWithoutMemorySaysWhatItNeeds) {
  CUDA_ARRAY3D_DESCRIPTOR shape{};
  shape.width = 1024;
  shape.height = 512;
  shape.format = kFloat;
  shape.channels = 1;
  shape.flags = CUDA_ARRAY3D_DEFERRED_MAPPING;
  const std::uint64_t before = free_bytes();
  CUmipmappedArray mipmap = nullptr;
  ASSERT_EQ(CU(cuMipmappedArrayCreate)(&mipmap, &shape, 2), CUDA_SUCCESS);
  EXPECT_EQ(free_bytes(), before);
  CUDA_ARRAY_MEMORY_REQUIREMENTS needs{};
  EXPECT_EQ(CU(cuMipmappedArrayGetMemoryRequirements)(&needs, mipmap, 0), CUDA_SUCCESS);
  EXPECT_EQ(needs.bytes, (2u << 20) + (512u << 10));
  EXPECT_EQ(CU(cuMipmappedArrayDestroy)(mipmap), CUDA_SUCCESS);
}

TEST_F(Textures, NeedMemoryThatIsThereAndAligned) {
  EXPECT_EQ(make(linear(memory_ + 4, 4096)), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(make(linear(memory_, std::size_t{4} << 30)), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(make(linear(memory_, 0)), CUDA_ERROR_INVALID_VALUE);
  CUDA_RESOURCE_DESC pitched{};
  pitched.type = 3;
  pitched.pitch = {memory_, kFloat, 1, 100, 50, 512};
  EXPECT_EQ(make(pitched), CUDA_SUCCESS);
  pitched.pitch.pitch_bytes = 500;
  EXPECT_EQ(make(pitched), CUDA_ERROR_INVALID_VALUE);
  CUDA_RESOURCE_DESC nothing{};
  EXPECT_EQ(make(nothing), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(Textures, EndWithTheirContext) {
  ASSERT_EQ(make(linear(memory_, 4096)), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuCtxDestroy_v2)(context_), CUDA_SUCCESS);
  CUDA_RESOURCE_DESC resource{};
  EXPECT_EQ(CU(cuTexObjectGetResourceDesc)(&resource, texture_), CUDA_ERROR_INVALID_HANDLE);
  ASSERT_EQ(CU(cuCtxCreate_v2)(&context_, 0, 0), CUDA_SUCCESS);
}

TEST_F(Textures, SurfacesNeedAnArrayThatCanBeStoredTo) {
  CUDA_RESOURCE_DESC resource{};
  CUsurfObject surface = 0;
  resource.array = array();
  EXPECT_EQ(CU(cuSurfObjectCreate)(&surface, &resource), CUDA_ERROR_INVALID_VALUE);
  resource.array = array(0x02);
  ASSERT_EQ(CU(cuSurfObjectCreate)(&surface, &resource), CUDA_SUCCESS);
  CUDA_RESOURCE_DESC told{};
  EXPECT_EQ(CU(cuSurfObjectGetResourceDesc)(&told, surface), CUDA_SUCCESS);
  EXPECT_EQ(told.array, resource.array);
  EXPECT_EQ(CU(cuTexObjectDestroy)(surface), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(CU(cuSurfObjectDestroy)(surface), CUDA_SUCCESS);
}

TEST_F(Textures, ABatchCopiesBoxesThroughArraysInOrder) {
  std::vector<float> given(16 * 8);
  std::iota(given.begin(), given.end(), 1.0F);
  std::vector<float> got(4 * 2, 0.0F);
  CUstream stream = nullptr;
  ASSERT_EQ(CU(cuStreamCreate)(&stream, 1), CUDA_SUCCESS);
  CUDA_MEMCPY3D_BATCH_OP copies[2]{};
  // All of it in, and a part of it out: 4 elements of 2 rows, from column 2 of row 3 on.
  copies[0].from.type = 1;
  copies[0].from.pointer = {reinterpret_cast<CUdeviceptr>(given.data()), 0, 0, {}};
  copies[0].to.type = 2;
  copies[0].to.array = {array(), 0, 0, 0};
  copies[0].width = 16;
  copies[0].height = 8;
  copies[0].depth = 1;
  copies[1].from.type = 2;
  copies[1].from.array = {copies[0].to.array.array, 2, 3, 0};
  copies[1].to.type = 1;
  copies[1].to.pointer = {reinterpret_cast<CUdeviceptr>(got.data()), 4, 2, {}};
  copies[1].width = 4;
  copies[1].height = 2;
  copies[1].depth = 1;
  std::size_t failed = 7;
  EXPECT_EQ(CU(cuMemcpy3DBatchAsync)(2, copies, &failed, 0, stream), CUDA_SUCCESS);
  EXPECT_EQ(failed, SIZE_MAX);
  EXPECT_EQ(CU(cuStreamSynchronize)(stream), CUDA_SUCCESS);
  EXPECT_EQ(got, (std::vector<float>{51, 52, 53, 54, 67, 68, 69, 70}));

  copies[1].from.array.x = 14;  // two columns too far
  EXPECT_EQ(CU(cuMemcpy3DBatchAsync)(2, copies, &failed, 0, stream), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(failed, 1u);
  EXPECT_EQ(CU(cuMemcpy3DBatchAsync_v2)(1, copies, 0, nullptr), CUDA_ERROR_INVALID_HANDLE);
}

}  // namespace
}  // namespace aliquot::simdriver::test
