// Several processes on one simulated machine. The test itself never initialises the driver: it
// forks children that do.
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <random>
#include <thread>
#include <vector>

#include "simdriver/channel/socket.h"
#include "simdriver/cuda/builtin_kernels.h"
#include "simdriver/cuda/test_driver.h"

namespace aliquot::simdriver::test {
namespace {

constexpr std::uint64_t kMiB = 1u << 20;

[[maybe_unused]] const auto* const kMachine = machine_for_tests("a100x8");

// Words that parent and children share.
struct Board {
  std::atomic<int> step;
  std::atomic<int> value;
  unsigned char bytes[128];
};

class Processes : public testing::Test {
 protected:
  Processes()
      : board_(new(mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                        -1, 0)) Board()) {}
  pid_t spawn(const std::function<int()>& work) {
    const pid_t child = fork();
    if (child == 0) _exit(work());
    return child;
  }
  static int wait_for(pid_t child) {
    int status = -1;
    waitpid(child, &status, 0);
    return status;
  }
  // Bounded, so that a failed child does not hang the test.
  bool reached(int step) const {
    for (int i = 0; i < 5000 && board_->step < step; ++i) usleep(1000);
    return board_->step >= step;
  }
  static bool eventually_free(std::uint64_t bytes) {
    for (int i = 0; i < 2000 && free_bytes() != bytes; ++i) usleep(1000);
    return free_bytes() == bytes;
  }
  Board* board_;
};

int start_driver(CUdevice device = 0) {
  CUcontext context = nullptr;
  int failed = CU(cuInit)(0);
  failed |= CU(cuDevicePrimaryCtxRetain)(&context, device);
  failed |= CU(cuCtxSetCurrent)(context);
  return failed;
}

TEST_F(Processes, LeaveNothingBehindWhenKilled) {
  const std::uint64_t before = free_bytes();
  ASSERT_GT(before, 0u);
  const pid_t child = spawn([&] {
    CUdeviceptr address = 0;
    if (start_driver() != 0 || CU(cuMemAlloc_v2)(&address, 1ull << 30) != 0) return 1;
    board_->step = 1;
    pause();
    return 0;
  });
  ASSERT_TRUE(reached(1));
  EXPECT_LT(free_bytes(), before - (1ull << 30));
  kill(child, SIGKILL);
  wait_for(child);
  EXPECT_TRUE(eventually_free(before)) << "left: " << before - free_bytes();
}

TEST_F(Processes, CannotTakeMoreTogetherThanThereIs) {
  const std::uint64_t before = free_bytes();
  constexpr int kChildren = 6;
  std::vector<pid_t> children;
  for (int i = 0; i < kChildren; ++i) {
    children.push_back(spawn([&] {
      if (start_driver() != 0) return 1;
      // All contexts first: none is refused for what another child has taken.
      ++board_->step;
      while (board_->step < kChildren) usleep(500);
      int got = 0;
      CUdeviceptr address = 0;
      while (CU(cuMemAlloc_v2)(&address, 512 * kMiB) == 0) ++got;
      board_->value += got;
      ++board_->step;
      while (board_->step < 100) usleep(1000);
      return 0;
    }));
  }
  EXPECT_TRUE(reached(2 * kChildren));
  // All is taken but less than one request, and the contexts.
  EXPECT_LT(free_bytes(), 512 * kMiB);
  EXPECT_LE(static_cast<std::uint64_t>(board_->value) * 512 * kMiB, before);
  board_->step = 100;
  for (const pid_t child : children) EXPECT_EQ(wait_for(child), 0);
  EXPECT_TRUE(eventually_free(before));
}

TEST_F(Processes, AreNotInitialisedInTheChildOfAFork) {
  const pid_t child = spawn([&] {
    if (start_driver() != 0) return 1;
    const pid_t grandchild = fork();
    if (grandchild == 0) {
      CUdeviceptr address = 0;
      _exit(CU(cuMemAlloc_v2)(&address, 4096) == CUDA_ERROR_NOT_INITIALIZED ? 0 : 1);
    }
    int status = -1;
    waitpid(grandchild, &status, 0);
    CUdeviceptr address = 0;
    return status == 0 && CU(cuMemAlloc_v2)(&address, 4096) == 0 ? 0 : 1;
  });
  EXPECT_EQ(wait_for(child), 0);
}

TEST_F(Processes, ShareMemoryByIpcHandleUntilTheLastOneLetsGo) {
  const std::uint64_t before = free_bytes();
  const pid_t exporter = spawn([&] {
    CUdeviceptr address = 0;
    CUdeviceptr other = 0;
    CUipcMemHandle handle{};
    if (start_driver() != 0 || CU(cuMemAlloc_v2)(&other, 4096) != 0 ||
        CU(cuMemAlloc_v2)(&address, 8192) != 0 || CU(cuMemsetD8_v2)(address, 7, 8192) != 0 ||
        CU(cuMemsetD8_v2)(other, 9, 4096) != 0 || CU(cuIpcGetMemHandle)(&handle, address) != 0) {
      return 1;
    }
    std::memcpy(board_->bytes, &handle, sizeof(handle));
    board_->step = 1;
    while (board_->step < 2) usleep(500);
    unsigned char got = 0;
    if (CU(cuMemcpyDtoH_v2)(&got, address + 100, 1) != 0 || got != 55) return 2;
    if (CU(cuMemcpyDtoH_v2)(&got, other, 1) != 0 || got != 9) return 3;
    return 0;  // ends without freeing
  });
  ASSERT_TRUE(reached(1));
  const pid_t importer = spawn([&] {
    CUipcMemHandle handle{};
    std::memcpy(&handle, board_->bytes, sizeof(handle));
    CUdeviceptr address = 0;
    unsigned char got = 0;
    if (start_driver() != 0 ||
        CU(cuIpcOpenMemHandle_v2)(&address, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) != 0 ||
        CU(cuMemcpyDtoH_v2)(&got, address, 1) != 0 || got != 7 ||
        CU(cuMemsetD8_v2)(address + 100, 55, 1) != 0) {
      return 1;
    }
    board_->step = 2;
    while (board_->step < 3) usleep(500);
    if (CU(cuMemcpyDtoH_v2)(&got, address + 1, 1) != 0 || got != 7) return 2;
    handle.reserved[20] ^= 1;  // the key
    CUdeviceptr wrong = 0;
    if (CU(cuIpcOpenMemHandle_v2)(&wrong, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) == 0) {
      return 3;
    }
    return CU(cuIpcCloseMemHandle)(address);
  });
  EXPECT_EQ(wait_for(exporter), 0);
  board_->step = 3;
  EXPECT_EQ(wait_for(importer), 0);
  EXPECT_TRUE(eventually_free(before));
}

TEST_F(Processes, ShareAllocationsOfAPool) {
  const std::uint64_t before = free_bytes();
  int sockets[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets), 0);
  const pid_t exporter = spawn([&] {
    CUmemPoolProps properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.handle_types = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    CUmemoryPool pool = nullptr;
    CUdeviceptr address = 0;
    CUmemPoolPtrExportData data{};
    int fd = -1;
    if (start_driver() != 0 || CU(cuMemPoolCreate)(&pool, &properties) != 0 ||
        CU(cuMemAllocFromPoolAsync)(&address, 1000, pool, nullptr) != 0 ||
        CU(cuMemsetD8_v2)(address, 33, 1000) != 0 ||
        CU(cuMemPoolExportToShareableHandle)(&fd, pool, properties.handle_types, 0) != 0 ||
        CU(cuMemPoolExportPointer)(&data, address) != 0) {
      return 1;
    }
    const int fds[] = {fd};
    if (!send_datagram(sockets[0], std::as_bytes(std::span(&data, 1)), fds)) return 2;
    while (board_->step < 1) usleep(500);
    return 0;
  });
  const pid_t importer = spawn([&] {
    auto got = receive_datagram(sockets[1]);
    CUmemPoolPtrExportData data{};
    if (!got || got->bytes.size() != sizeof(data) || got->fds.size() != 1) return 1;
    std::memcpy(&data, got->bytes.data(), sizeof(data));
    CUmemoryPool pool = nullptr;
    CUdeviceptr address = 0;
    unsigned char byte = 0;
    void* handle = as_os_handle(got->fds[0].get());
    if (start_driver() != 0 ||
        CU(cuMemPoolImportFromShareableHandle)(&pool, handle,
                                               CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0) != 0 ||
        CU(cuMemPoolImportPointer)(&address, pool, &data) != 0 ||
        CU(cuMemcpyDtoH_v2)(&byte, address + 999, 1) != 0 || byte != 33) {
      return 2;
    }
    return CU(cuMemFreeAsync)(address, nullptr);
  });
  EXPECT_EQ(wait_for(importer), 0);
  board_->step = 1;
  EXPECT_EQ(wait_for(exporter), 0);
  close(sockets[0]);
  close(sockets[1]);
  EXPECT_TRUE(eventually_free(before));
}

// A descriptor of two granules with `value` in them, whose handle is gone by then; -1: failed.
int exported_and_released(unsigned char value) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.requested_handle_types = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUmemGenericAllocationHandle handle = 0;
  const CUmemAccessDesc access{properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CUdeviceptr at = 0;
  int fd = -1;
  const bool done =
      CU(cuMemCreate)(&handle, 4 * kMiB, &properties, 0) == 0 &&
      CU(cuMemAddressReserve)(&at, 4 * kMiB, 0, 0, 0) == 0 &&
      CU(cuMemMap)(at, 4 * kMiB, 0, handle, 0) == 0 &&
      CU(cuMemSetAccess)(at, 4 * kMiB, &access, 1) == 0 &&
      CU(cuMemsetD8_v2)(at, value, 4 * kMiB) == 0 && CU(cuCtxSynchronize)() == 0 &&
      CU(cuMemExportToShareableHandle)(&fd, handle, properties.requested_handle_types, 0) == 0 &&
      CU(cuMemUnmap)(at, 4 * kMiB) == 0 && CU(cuMemRelease)(handle) == 0;
  return done ? fd : -1;
}

CUmemGenericAllocationHandle imported(int fd) {
  CUmemGenericAllocationHandle handle = 0;
  const CUresult result = CU(cuMemImportFromShareableHandle)(
      &handle, as_os_handle(fd), CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  return result == CUDA_SUCCESS ? handle : 0;
}

// The last byte of two imported granules; -1: they could not be mapped.
int last_byte_of(CUmemGenericAllocationHandle handle) {
  const CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, 0},
                               CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CUdeviceptr at = 0;
  unsigned char byte = 0;
  const bool read = CU(cuMemAddressReserve)(&at, 4 * kMiB, 0, 0, 0) == 0 &&
                    CU(cuMemMap)(at, 4 * kMiB, 0, handle, 0) == 0 &&
                    CU(cuMemSetAccess)(at, 4 * kMiB, &access, 1) == 0 &&
                    CU(cuMemcpyDtoH_v2)(&byte, at + 4 * kMiB - 1, 1) == 0 &&
                    CU(cuMemUnmap)(at, 4 * kMiB) == 0;
  return read ? byte : -1;
}

TEST_F(Processes, ADescriptorKeepsMemoryThatItsMakerReleased) {
  const std::uint64_t before = free_bytes();
  int sockets[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets), 0);
  const pid_t maker = spawn([&] {
    const UniqueFd fd(start_driver() == 0 ? exported_and_released(33) : -1);
    const int fds[] = {fd.get()};
    return fd && send_datagram(sockets[0], std::as_bytes(std::span("x", 1)), fds) ? 0 : 1;
  });
  ASSERT_EQ(wait_for(maker), 0);
  // Nobody but the message has it now.
  const pid_t importer = spawn([&] {
    auto got = receive_datagram(sockets[1]);
    if (!got || got->fds.size() != 1 || start_driver() != 0) return 1;
    const CUmemGenericAllocationHandle handle = imported(got->fds[0].get());
    if (handle == 0) return 2;
    got->fds.clear();  // from here on the handle alone keeps it
    const int byte = last_byte_of(handle);
    if (byte != 33) return 3;
    std::uint64_t with = 0;
    std::uint64_t without = 0;
    std::size_t total = 0;
    if (CU(cuMemGetInfo_v2)(&with, &total) != 0 || CU(cuMemRelease)(handle) != 0 ||
        CU(cuMemGetInfo_v2)(&without, &total) != 0) {
      return 4;
    }
    return without - with == 4 * kMiB ? 0 : 5;
  });
  EXPECT_EQ(wait_for(importer), 0);
  close(sockets[0]);
  close(sockets[1]);
  EXPECT_TRUE(eventually_free(before));
}

TEST_F(Processes, MemoryIsFreedWithItsLastDescriptor) {
  const std::uint64_t before = free_bytes();
  const pid_t maker = spawn([&] {
    if (start_driver() != 0) return 1;
    UniqueFd fd(exported_and_released(1));
    const std::uint64_t kept = free_bytes();
    UniqueFd copy(dup(fd.get()));
    fd.reset();
    if (free_bytes() != kept) return 2;
    copy.reset();
    return free_bytes() == kept + 4 * kMiB ? 0 : 3;
  });
  EXPECT_EQ(wait_for(maker), 0);
  EXPECT_TRUE(eventually_free(before));
}

TEST_F(Processes, WorkWithFewAddressesLeft) {
  const pid_t child = spawn([&] {
    // A sanitizer has taken most of them already: 300 GiB more.
    std::uint64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlim_t most = pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)) + (300ull << 30);
    const rlimit limit{most, most};
    CUdeviceptr address = 0;
    unsigned char byte = 0;
    if (setrlimit(RLIMIT_AS, &limit) != 0 || start_driver() != 0) return 1;
    if (CU(cuMemAlloc_v2)(&address, 64ull << 30) != 0) return 2;
    if (CU(cuMemsetD8_v2)(address, 7, 64ull << 30) != 0) return 3;
    if (CU(cuMemcpyDtoH_v2)(&byte, address + (63ull << 30), 1) != 0 || byte != 7) return 4;
    return 0;
  });
  EXPECT_EQ(wait_for(child), 0);
}

TEST_F(Processes, WaitForEachOthersEvents) {
  const pid_t recorder = spawn([&] {
    CUevent event = nullptr;
    CUipcEventHandle handle{};
    CUmodule module = nullptr;
    CUfunction spin = nullptr;
    if (start_driver() != 0 ||
        CU(cuEventCreate)(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING) != 0 ||
        CU(cuIpcGetEventHandle)(&handle, event) != 0 ||
        CU(cuModuleLoadData)(&module, kBuiltinPtx) != 0 ||
        CU(cuModuleGetFunction)(&spin, module, "aliquot_spin") != 0) {
      return 1;
    }
    std::memcpy(board_->bytes, &handle, sizeof(handle));
    std::uint64_t ns = 500'000'000;
    void* arguments[] = {&ns};
    if (CU(cuLaunchKernel)(spin, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr) != 0 ||
        CU(cuEventRecord)(event, nullptr) != 0) {
      return 2;
    }
    board_->step = 1;
    const CUresult result = CU(cuCtxSynchronize)();
    reached(2);  // the event goes with its maker
    return static_cast<int>(result);
  });
  ASSERT_TRUE(reached(1));
  const pid_t waiter = spawn([&] {
    CUipcEventHandle handle{};
    std::memcpy(&handle, board_->bytes, sizeof(handle));
    CUevent event = nullptr;
    if (start_driver() != 0 || CU(cuIpcOpenEventHandle)(&event, handle) != 0) return 1;
    board_->step = 2;
    if (CU(cuEventQuery)(event) != CUDA_ERROR_NOT_READY) return 2;
    return static_cast<int>(CU(cuEventSynchronize)(event));
  });
  EXPECT_EQ(wait_for(waiter), 0);
  EXPECT_EQ(wait_for(recorder), 0);
}

// ALIQUOT_KILLS: how many (200).
TEST_F(Processes, SurviveNothingButTheirOwnKills) {
  const std::uint64_t before = free_bytes();
  const char* wish = std::getenv("ALIQUOT_KILLS");
  const int kills = wish == nullptr ? 200 : std::atoi(wish);
  std::mt19937 random(7);
  for (int round = 0; round < kills; ++round) {
    const pid_t child = spawn([&] {
      if (start_driver() != 0) return 1;
      board_->step = 1;
      for (;;) {
        CUdeviceptr address = 0;
        CUstream stream = nullptr;
        CU(cuMemAlloc_v2)(&address, 3 * kMiB);
        CU(cuStreamCreate)(&stream, 0);
        CU(cuMemsetD8Async)(address, 1, 3 * kMiB, stream);
        CU(cuStreamDestroy_v2)(stream);
        CU(cuMemFree_v2)(address);
      }
    });
    if (round % 2 == 0) {
      ASSERT_TRUE(reached(1));
    }
    usleep(random() % 3000);
    kill(child, SIGKILL);
    wait_for(child);
    board_->step = 0;
  }
  EXPECT_TRUE(eventually_free(before)) << "left: " << before - free_bytes();
}

TEST_F(Processes, DoNotHurtTheServerWithAnyBytes) {
  const std::uint64_t before = free_bytes();
  std::mt19937_64 random(99);
  for (int round = 0; round < 300; ++round) {
    const auto socket = connect_to(machine_directory("test") / "socket");
    ASSERT_TRUE(socket);
    for (int i = 0; i < 8; ++i) {
      std::vector<std::byte> bytes(random() % 200);
      for (auto& byte : bytes) byte = static_cast<std::byte>(random());
      if (random() % 2 == 0 && bytes.size() >= sizeof(RequestHeader)) {
        // A plausible header, so that handlers see the rest.
        const RequestHeader header{static_cast<Op>(0x100 * (1 + random() % 6) + random() % 22),
                                   static_cast<std::uint32_t>(bytes.size() - sizeof(header))};
        if (header.op == Op::kShutdown) continue;
        std::memcpy(bytes.data(), &header, sizeof(header));
      }
      if (!send_datagram(socket->get(), bytes, {})) break;
    }
  }
  EXPECT_TRUE(eventually_free(before));
}

}  // namespace
}  // namespace aliquot::simdriver::test
