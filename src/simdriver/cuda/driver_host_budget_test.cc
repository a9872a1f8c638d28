// The host's memory for simulated contents is used up long before the GPU's, by one of two
// programs.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <vector>

#include "simdriver/cuda/test_driver.h"

namespace aliquot::simdriver::test {
namespace {

constexpr std::uint64_t kMiB = 1u << 20;

[[maybe_unused]] const auto* const kMachine = machine_for_tests("a100x2", "", [](MachineSpec&) {
  setenv("ALIQUOT_SIM_HOST_BYTES", "134217728", 1);  // 128 MiB; the server inherits it
});

CUresult start(CUdevice gpu) {
  CUcontext context = nullptr;
  if (const CUresult result = CU(cuInit)(0)) return result;
  if (const CUresult result = CU(cuDevicePrimaryCtxRetain)(&context, gpu)) return result;
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

// A program beside the one that uses the budget up: it writes and reads what it has, and begins
// anew with contexts and memory, until it is told to end. Counts its rounds.
class Neighbour {
 public:
  Neighbour()
      : board_(new(mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                        -1, 0)) Board()),
        child_(fork()) {
    if (child_ == 0) _exit(work());
  }
  void expect_progress() const {
    const int before = board_->rounds;
    for (int i = 0; i < 10'000 && board_->rounds < before + 3; ++i) usleep(1000);
    EXPECT_GE(board_->rounds, before + 3);
  }
  void expect_a_good_end() const {
    board_->end = true;
    int status = -1;
    waitpid(child_, &status, 0);
    EXPECT_EQ(status, 0);
  }

 private:
  struct Board {
    std::atomic<int> rounds = 0;
    std::atomic<bool> end = false;
  };
  int work() const {
    const std::vector<unsigned char> data = noise(4 * kMiB);
    std::vector<unsigned char> read(data.size());
    CUdeviceptr memory = 0;
    int failed = start(1) | CU(cuMemAlloc_v2)(&memory, data.size());
    while (failed == 0 && !board_->end) {
      CUdeviceptr other = 0;
      CUcontext context = nullptr;
      failed |= CU(cuMemcpyHtoD_v2)(memory, data.data(), data.size()) |
                CU(cuMemcpyDtoH_v2)(read.data(), memory, read.size());
      failed |= CU(cuCtxCreate_v2)(&context, 0, 1) | CU(cuMemAlloc_v2)(&other, 64 * kMiB) |
                CU(cuMemsetD8_v2)(other, 7, 64 * kMiB) | CU(cuCtxDestroy_v2)(context);
      failed |= read == data ? 0 : 1;
      ++board_->rounds;
    }
    return failed == 0 ? 0 : 1;
  }
  Board* board_;
  pid_t child_;
};

TEST(HostBudget, RefusesTheWriteThatPassesItAndNothingElse) {
  const Neighbour neighbour;  // before this process has a driver: it forks
  neighbour.expect_progress();
  ASSERT_EQ(start(0), CUDA_SUCCESS);
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
  neighbour.expect_progress();

  // The same by other ways.
  CUdeviceptr managed = 0;
  ASSERT_EQ(CU(cuMemAllocManaged)(&managed, data.size(), CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuMemcpyHtoD_v2)(managed, data.data(), data.size()), CUDA_ERROR_OPERATING_SYSTEM);
  const CUDA_ARRAY_DESCRIPTOR shape{data.size() / 4, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1};
  CUarray array = nullptr;
  ASSERT_EQ(CU(cuArrayCreate_v2)(&array, &shape), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuMemcpyHtoA_v2)(array, 0, data.data(), data.size()), CUDA_ERROR_OPERATING_SYSTEM);

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
  neighbour.expect_progress();
  neighbour.expect_a_good_end();
}

}  // namespace
}  // namespace aliquot::simdriver::test
