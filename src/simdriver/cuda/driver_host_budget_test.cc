// The host's memory for simulated contents is used up long before the GPU's.
#include <cstdlib>
#include <vector>

#include "simdriver/cuda/test_driver.h"

namespace aliquot::simdriver::test {
namespace {

constexpr std::uint64_t kMiB = 1u << 20;

[[maybe_unused]] const auto* const kMachine = machine_for_tests("a100x2", "", [](MachineSpec&) {
  setenv("ALIQUOT_SIM_HOST_BYTES", "67108864", 1);  // 64 MiB; the server inherits it
});

CUresult start() {
  CUcontext context = nullptr;
  if (const CUresult result = CU(cuInit)(0)) return result;
  if (const CUresult result = CU(cuDevicePrimaryCtxRetain)(&context, 0)) return result;
  return CU(cuCtxSetCurrent)(context);
}

// Bytes of no single pattern, so that they have to be kept.
std::vector<unsigned char> noise(std::uint64_t bytes) {
  std::vector<unsigned char> made(bytes);
  std::uint32_t state = 1;
  for (unsigned char& byte : made)
    byte = static_cast<unsigned char>((state = state * 69069 + 1) >> 24);
  return made;
}

TEST(HostBudget, RefusesTheWriteThatPassesItAndNothingElse) {
  ASSERT_EQ(start(), CUDA_SUCCESS);
  const std::vector<unsigned char> data = noise(20 * kMiB);
  CUdeviceptr kept = 0;
  CUdeviceptr refused = 0;
  ASSERT_EQ(CU(cuMemAlloc_v2)(&kept, data.size()), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuMemAlloc_v2)(&refused, 4 * data.size()), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuMemcpyHtoD_v2)(kept, data.data(), data.size()), CUDA_SUCCESS);
  CUresult result = CUDA_SUCCESS;
  for (std::uint64_t i = 0; i < 4 && result == CUDA_SUCCESS; ++i) {
    result = CU(cuMemcpyHtoD_v2)(refused + i * data.size(), data.data(), data.size());
  }
  EXPECT_EQ(result, CUDA_ERROR_OPERATING_SYSTEM);

  // What was written stays; one pattern over all of it costs the host nothing.
  std::vector<unsigned char> read(data.size());
  EXPECT_EQ(CU(cuMemcpyDtoH_v2)(read.data(), kept, read.size()), CUDA_SUCCESS);
  EXPECT_EQ(read, data);
  CUdeviceptr large = 0;
  ASSERT_EQ(CU(cuMemAlloc_v2)(&large, 8192 * kMiB), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuMemsetD32_v2)(large, 0x01020304, 2048 * kMiB), CUDA_SUCCESS);

  // Freed memory serves again.
  EXPECT_EQ(CU(cuMemFree_v2)(refused), CUDA_SUCCESS);
  CUdeviceptr again = 0;
  ASSERT_EQ(CU(cuMemAlloc_v2)(&again, data.size()), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuMemcpyHtoD_v2)(again, data.data(), data.size()), CUDA_SUCCESS);
}

}  // namespace
}  // namespace aliquot::simdriver::test
