// A machine that pretends CUDA 12.4: what came later is absent, whoever asks, and what came before
// CUDA 3.2 is there.
#include <cstdint>
#include <vector>

#include "driver_abi/cuda_table.h"
#include "simdriver/cuda/test_driver.h"

namespace aliquot::simdriver::test {
namespace {

[[maybe_unused]] const auto* const kMachine = machine_for_tests("h100x8", "12.4");

TEST(DriverVersions, SaysTheVersionThatItPretends) {
  int version = 0;
  EXPECT_EQ(CU(cuInit)(0), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuDriverGetVersion)(&version), CUDA_SUCCESS);
  EXPECT_EQ(version, 12040);
}

TEST(DriverVersions, HasTheNamesOfItsVersionAndNoYoungerOnes) {
  int younger = 0;
  for (const auto& entry : driver_abi::kCudaEntries) {
    const bool there = dlsym(driver_handle(), entry.c_str()) != nullptr;
    EXPECT_EQ(there, entry.in_version(12040)) << entry.symbol;
    younger += there ? 0 : 1;
  }
  EXPECT_GT(younger, 40);
}

TEST(DriverVersions, AnswersLookUpsOfYoungerNamesAsUnknown) {
  void* function = nullptr;
  CUdriverProcAddressQueryResult status = -1;
  EXPECT_EQ(CU(cuGetProcAddress_v2)("cuMemGetMemPool", &function, 13000, 0, &status),
            CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  EXPECT_EQ(CU(cuGetProcAddress_v2)("cuCtxGetDevice", &function, 13000, 0, &status), CUDA_SUCCESS);
  EXPECT_EQ(function, dlsym(driver_handle(), "cuCtxGetDevice"));
}

// A program of 2010: addresses and sizes of 32 bits from end to end.
class BeforeCuda32 : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(CU(cuInit)(0), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuCtxCreate)(&context_, 0, 0), CUDA_SUCCESS);
    before_ = free_bytes();
  }
  void TearDown() override {
    EXPECT_EQ(free_bytes(), before_);
    EXPECT_EQ(CU(cuCtxDestroy)(context_), CUDA_SUCCESS);
  }
  CUcontext context_ = nullptr;
  std::uint64_t before_ = 0;
};

TEST_F(BeforeCuda32, LinearMemoryIsAllocatedCopiedFilledAndFreed) {
  constexpr unsigned kWords = 1 << 20;
  const unsigned bytes = kWords * 4;
  CUdeviceptr_v1 from = 0;
  CUdeviceptr_v1 to = 0;
  ASSERT_EQ(CU(cuMemAlloc)(&from, bytes), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuMemAlloc)(&to, bytes), CUDA_SUCCESS);
  EXPECT_EQ(before_ - free_bytes(), 8u << 20);
  EXPECT_EQ(CU(cuMemAlloc)(&to, 0), CUDA_ERROR_INVALID_VALUE);
  std::vector<std::uint32_t> words(kWords, 7);
  EXPECT_EQ(CU(cuMemcpyHtoD)(from, words.data(), bytes), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuMemcpyDtoD)(to, from, bytes), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuMemsetD32)(to, 9, 1), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuMemcpyDtoH)(words.data(), to, bytes), CUDA_SUCCESS);
  EXPECT_EQ(words[0], 9u);
  EXPECT_EQ(words[kWords - 1], 7u);

  CUdeviceptr_v1 base = 0;
  unsigned size = 0;
  EXPECT_EQ(CU(cuMemGetAddressRange)(&base, &size, to + 5000), CUDA_SUCCESS);
  EXPECT_EQ(base, to);
  EXPECT_EQ(size, bytes);
  // The same memory for the calls of today.
  EXPECT_EQ(CU(cuMemsetD32_v2)(from, 3, kWords), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuMemFree)(from), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuMemFree)(from), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CU(cuMemcpyHtoD)(from, words.data(), 4), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CU(cuMemFree)(to), CUDA_SUCCESS);
}

TEST_F(BeforeCuda32, MemoryThatIsFreedIsNoLongerSeen) {
  CUdeviceptr_v1 memory = 0;
  std::uint32_t word = 0;
  ASSERT_EQ(CU(cuMemAlloc)(&memory, 64), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuMemsetD32)(memory, 5, 16), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuMemFree)(memory), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuMemAlloc)(&memory, 64), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuMemcpyDtoH)(&word, memory, 4), CUDA_SUCCESS);
  EXPECT_EQ(word, 0u);
  EXPECT_EQ(CU(cuMemFree)(memory), CUDA_SUCCESS);
}

TEST_F(BeforeCuda32, BoxesAndArraysAreCopied) {
  CUdeviceptr_v1 memory = 0;
  unsigned pitch = 0;
  ASSERT_EQ(CU(cuMemAllocPitch)(&memory, &pitch, 40, 4, 4), CUDA_SUCCESS);
  EXPECT_EQ(pitch, 512u);
  EXPECT_EQ(CU(cuMemsetD2D8)(memory, pitch, 6, 40, 4), CUDA_SUCCESS);
  const CUDA_ARRAY_DESCRIPTOR_v1 shape{10, 4, CU_AD_FORMAT_UNSIGNED_INT32, 1};
  CUarray array = nullptr;
  ASSERT_EQ(CU(cuArrayCreate)(&array, &shape), CUDA_SUCCESS);
  CUDA_ARRAY_DESCRIPTOR_v1 told{};
  EXPECT_EQ(CU(cuArrayGetDescriptor)(&told, array), CUDA_SUCCESS);
  EXPECT_EQ(told.width, 10u);
  EXPECT_EQ(told.height, 4u);
  CUDA_MEMCPY2D_v1 copy{};
  copy.from_type = CU_MEMORYTYPE_DEVICE;
  copy.from_device = memory;
  copy.from_pitch = pitch;
  copy.to_type = CU_MEMORYTYPE_ARRAY;
  copy.to_array = array;
  copy.width_bytes = 40;
  copy.height = 4;
  EXPECT_EQ(CU(cuMemcpy2D)(&copy), CUDA_SUCCESS);
  std::uint32_t word = 0;
  EXPECT_EQ(CU(cuMemcpyAtoH)(&word, array, 36, 4), CUDA_SUCCESS);
  EXPECT_EQ(word, 0x06060606u);
  EXPECT_EQ(CU(cuArrayDestroy)(array), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuMemFree)(memory), CUDA_SUCCESS);
}

// Below 2 GiB there is no room for all that a GPU has.
TEST_F(BeforeCuda32, MoreThanThereIsRoomForIsRefused) {
  CUdeviceptr_v1 memory = 0;
  EXPECT_EQ(CU(cuMemAlloc)(&memory, 3u << 30), CUDA_ERROR_OUT_OF_MEMORY);
}

}  // namespace
}  // namespace aliquot::simdriver::test
