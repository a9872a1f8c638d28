// No process reads what another wrote, by whatever kind of memory either has it. The GPU is so
// small that all of it is read. The test itself never initialises the driver: it forks children
// that do.
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <vector>

#include "simdriver/cuda/test_driver.h"

namespace aliquot::simdriver::test {
namespace {

constexpr std::uint64_t kMiB = 1u << 20;
constexpr std::uint64_t kWritten = 8 * kMiB;
constexpr std::uint32_t kSecret = 0x5ec4e75a;

[[maybe_unused]] const auto* const kMachine =
    machine_for_tests("a100x1", "", [](MachineSpec& machine) {
      MemorySizes& memory = machine.models[0].memory;
      memory.nvml_total_bytes = 256 * kMiB;
      memory.driver_total_bytes = 144 * kMiB;
      memory.context_bytes = 2 * kMiB;
    });

enum class Way { kLinear, kPool, kMapped, kManaged, kArray };
constexpr Way kWays[] = {Way::kLinear, Way::kPool, Way::kMapped, Way::kManaged, Way::kArray};

// Each answers 0, or what failed.
class Piece {
 public:
  Piece(Way way, std::uint64_t bytes) : way_(way), bytes_(bytes) {}
  int take() {
    switch (way_) {
      case Way::kLinear:
        return CU(cuMemAlloc_v2)(&address_, bytes_);
      case Way::kPool:
        return CU(cuMemAllocAsync)(&address_, bytes_, nullptr);
      case Way::kMapped:
        return map();
      case Way::kManaged:
        return CU(cuMemAllocManaged)(&address_, bytes_, CU_MEM_ATTACH_GLOBAL);
      case Way::kArray: {
        const CUDA_ARRAY_DESCRIPTOR shape{bytes_ / 4, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1};
        return CU(cuArrayCreate_v2)(&array_, &shape);
      }
    }
    return CUDA_ERROR_UNKNOWN;
  }
  int give() {
    switch (way_) {
      case Way::kPool:
        return CU(cuMemFreeAsync)(address_, nullptr) | CU(cuStreamSynchronize)(nullptr);
      case Way::kMapped:
        return CU(cuMemUnmap)(address_, bytes_) | CU(cuMemRelease)(handle_) |
               CU(cuMemAddressFree)(address_, bytes_);
      case Way::kArray:
        return CU(cuArrayDestroy)(array_);
      default:
        return CU(cuMemFree_v2)(address_);
    }
  }
  int write(std::uint64_t at, const std::vector<std::uint32_t>& words) {
    const std::uint64_t bytes = words.size() * 4;
    if (array_ != nullptr) return CU(cuMemcpyHtoA_v2)(array_, at, words.data(), bytes);
    return CU(cuMemcpyHtoD_v2)(address_ + at, words.data(), bytes);
  }
  int read(std::uint64_t at, std::vector<std::uint32_t>& words) {
    const std::uint64_t bytes = words.size() * 4;
    if (array_ != nullptr) return CU(cuMemcpyAtoH_v2)(words.data(), array_, at, bytes);
    return CU(cuMemcpyDtoH_v2)(words.data(), address_ + at, bytes);
  }

 private:
  int map() {
    CUmemAllocationProp on_device{};
    on_device.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    on_device.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    const CUmemAccessDesc access{on_device.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    return CU(cuMemCreate)(&handle_, bytes_, &on_device, 0) |
           CU(cuMemAddressReserve)(&address_, bytes_, 0, 0, 0) |
           CU(cuMemMap)(address_, bytes_, 0, handle_, 0) |
           CU(cuMemSetAccess)(address_, bytes_, &access, 1);
  }
  Way way_;
  std::uint64_t bytes_;
  CUdeviceptr address_ = 0;
  CUmemGenericAllocationHandle handle_ = 0;
  CUarray array_ = nullptr;
};

int start_driver() {
  CUcontext context = nullptr;
  return CU(cuInit)(0) | CU(cuCtxCreate_v2)(&context, 0, 0);
}

// Of each kind one piece that it keeps and one that it frees.
int write_by_every_way() {
  const std::vector<std::uint32_t> secret(kWritten / 4, kSecret);
  int failed = start_driver();
  for (const Way way : kWays) {
    for (const bool kept : {true, false}) {
      Piece piece(way, kWritten);
      failed |= piece.take() | piece.write(0, secret);
      if (!kept) failed |= piece.give();
    }
  }
  return failed;
}

// Takes all there is, in turn by each way, and reads all of it. Pieces with anything but zeros in
// them, or -1.
int pieces_with_traces() {
  int found = 0;
  int failed = start_driver();
  std::vector<std::uint32_t> seen(kMiB);
  const std::vector<std::uint32_t> nothing(seen.size(), 0);
  for (const Way way : kWays) {
    std::size_t free = 0;
    failed |= CU(cuMemGetInfo_v2)(&free, nullptr);
    const std::uint64_t bytes = free / (32 * kMiB) * (32 * kMiB);  // as a pool grows
    Piece all(way, bytes);
    failed |= all.take();
    for (std::uint64_t at = 0; at < bytes && failed == 0; at += seen.size() * 4) {
      failed |= all.read(at, seen);
      found += seen == nothing ? 0 : 1;
    }
    failed |= all.give();
  }
  return failed != 0 ? -1 : found;
}

// In a child: what `work` answers, cut to a byte.
pid_t spawn(const std::function<int()>& work) {
  const pid_t child = fork();
  if (child == 0) _exit(std::clamp(work(), -1, 1) & 0xff);
  return child;
}

int answer_of(pid_t child) {
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

// While the other has its memory, when it has freed it, and when it was killed over it.
TEST(Isolation, NobodySeesATraceOfWhatAnotherWrote) {
  auto* written =  // NOLINT(cppcoreguidelines-owning-memory): the mapping is
      new (mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))
          std::atomic<int>(0);
  const std::uint64_t before = free_bytes();
  const pid_t writer = spawn([&] {
    const int failed = write_by_every_way();
    *written = failed == 0 ? 1 : -1;
    return failed != 0 ? failed : pause();
  });
  for (int i = 0; i < 20'000 && *written == 0; ++i) usleep(1000);
  ASSERT_EQ(*written, 1);
  EXPECT_EQ(answer_of(spawn(pieces_with_traces)), 0);
  kill(writer, SIGKILL);
  answer_of(writer);
  for (int i = 0; i < 2000 && free_bytes() != before; ++i) usleep(1000);
  ASSERT_EQ(free_bytes(), before);
  EXPECT_EQ(answer_of(spawn(pieces_with_traces)), 0);
}

}  // namespace
}  // namespace aliquot::simdriver::test
