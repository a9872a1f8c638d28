// Programs on MIG instances of a simulated GPU: what they see, what they may take, how they end.
// Each program is a process: the driver reads CUDA_VISIBLE_DEVICES once.
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "driver_abi/nvml_constants.h"
#include "driver_abi/nvml_functions.h"
#include "simdriver/cuda/test_driver.h"

namespace aliquot::simdriver {
namespace {

[[maybe_unused]] const auto* const kMachine = test::machine_for_tests("a100x2");

constexpr unsigned kSmall = 19;  // 1g.10gb: 14 multiprocessors
constexpr unsigned kMiddle = 9;  // 3g.40gb: 42
constexpr std::size_t kMiB = 1 << 20;

template <typename Function>
Function nvml(const char* symbol) {
  static void* const library = dlopen(
      (machine_directory("test") / "lib" / "libnvidia-ml.so.1").c_str(), RTLD_NOW | RTLD_LOCAL);
  return reinterpret_cast<Function>(dlsym(library, symbol));
}
#define NV(symbol) nvml<::aliquot::driver_abi::fn::symbol>(#symbol)

// The administrator: cuts GPU 0 into a 3g.40gb and a 1g.10gb, each with one compute instance.
class Mig : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(NV(nvmlInit_v2)(), NVML_SUCCESS);
    ASSERT_EQ(NV(nvmlDeviceGetHandleByIndex_v2)(0, &gpu_), NVML_SUCCESS);
    nvmlReturn_t activation = -1;
    ASSERT_EQ(NV(nvmlDeviceSetMigMode)(gpu_, 1, &activation), NVML_SUCCESS);
    add(kMiddle, NVML_COMPUTE_INSTANCE_PROFILE_3_SLICE, 0);
    add(kSmall, NVML_COMPUTE_INSTANCE_PROFILE_1_SLICE, 1);
    for (unsigned i = 0; i < 2; ++i) {
      ASSERT_EQ(NV(nvmlDeviceGetMigDeviceHandleByIndex)(gpu_, i, &devices_[i]), NVML_SUCCESS);
      std::array<char, 96> text{};
      ASSERT_EQ(NV(nvmlDeviceGetUUID)(devices_[i], text.data(), 96), NVML_SUCCESS);
      uuids_[i] = text.data();
    }
  }
  void TearDown() override {
    for (unsigned i = 0; i < 2; ++i) {
      EXPECT_EQ(NV(nvmlComputeInstanceDestroy)(compute_[i]), NVML_SUCCESS);
      EXPECT_EQ(NV(nvmlGpuInstanceDestroy)(parents_[i]), NVML_SUCCESS);
    }
    nvmlReturn_t activation = -1;
    EXPECT_EQ(NV(nvmlDeviceSetMigMode)(gpu_, 0, &activation), NVML_SUCCESS);
    NV(nvmlShutdown)();
  }
  void add(unsigned profile, unsigned compute_profile, unsigned i) {
    ASSERT_EQ(NV(nvmlDeviceCreateGpuInstance)(gpu_, profile, &parents_[i]), NVML_SUCCESS);
    ASSERT_EQ(NV(nvmlGpuInstanceCreateComputeInstance)(parents_[i], compute_profile, &compute_[i]),
              NVML_SUCCESS);
  }
  nvmlMemory_t memory(nvmlDevice_t device) {
    nvmlMemory_t now{};
    EXPECT_EQ(NV(nvmlDeviceGetMemoryInfo)(device, &now), NVML_SUCCESS);
    return now;
  }

  nvmlDevice_t gpu_ = nullptr;
  std::array<nvmlDevice_t, 2> devices_{};
  std::array<nvmlGpuInstance_t, 2> parents_{};
  std::array<nvmlComputeInstance_t, 2> compute_{};
  std::array<std::string, 2> uuids_;
};

// Runs `body` as a program that is given `visible` (nullptr: nothing).
template <typename Body>
pid_t start_program(const char* visible, Body body) {
  const pid_t child = fork();
  if (child != 0) return child;
  if (visible == nullptr) {
    unsetenv("CUDA_VISIBLE_DEVICES");
  } else {
    setenv("CUDA_VISIBLE_DEVICES", visible, 1);
  }
  body();
  _exit(testing::Test::HasFailure() ? 1 : 0);
}
int end_of(pid_t program) {
  int status = -1;
  waitpid(program, &status, 0);
  return status;
}

void expect_device(const char* name, int multiprocessors) {
  ASSERT_EQ(CU(cuInit)(0), CUDA_SUCCESS);
  int count = 0;
  EXPECT_EQ(CU(cuDeviceGetCount)(&count), CUDA_SUCCESS);
  EXPECT_EQ(count, 1);
  std::array<char, 96> text{};
  EXPECT_EQ(CU(cuDeviceGetName)(text.data(), 96, 0), CUDA_SUCCESS);
  EXPECT_STREQ(text.data(), name);
  int value = 0;
  EXPECT_EQ(CU(cuDeviceGetAttribute)(&value, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0),
            CUDA_SUCCESS);
  EXPECT_EQ(value, multiprocessors);
}

TEST_F(Mig, AProgramSeesTheInstanceThatItIsGiven) {
  const std::size_t total = memory(devices_[1]).total;
  EXPECT_EQ(end_of(start_program(uuids_[1].c_str(),
                                 [&] {
                                   expect_device("NVIDIA A100-SXM4-80GB MIG 1g.10gb", 14);
                                   std::size_t bytes = 0;
                                   EXPECT_EQ(CU(cuDeviceTotalMem_v2)(&bytes, 0), CUDA_SUCCESS);
                                   EXPECT_EQ(bytes, total);
                                   CUuuid own{};
                                   CUuuid gpu{};
                                   EXPECT_EQ(CU(cuDeviceGetUuid_v2)(&own, 0), CUDA_SUCCESS);
                                   EXPECT_EQ(CU(cuDeviceGetUuid)(&gpu, 0), CUDA_SUCCESS);
                                   EXPECT_NE(memcmp(&own, &gpu, sizeof(own)), 0);
                                 })),
            0);
}

TEST_F(Mig, AProgramThatIsGivenNothingSeesTheFirstInstanceAlone) {
  EXPECT_EQ(end_of(start_program(nullptr,
                                 [] { expect_device("NVIDIA A100-SXM4-80GB MIG 3g.40gb", 42); })),
            0);
  EXPECT_EQ(end_of(start_program("1", [] { expect_device("NVIDIA A100-SXM4-80GB", 108); })), 0);
}

TEST_F(Mig, MemoryEndsWithTheInstanceAndIsToldByNvml) {
  int go[2];
  int done[2];
  ASSERT_EQ(pipe(go), 0);
  ASSERT_EQ(pipe(done), 0);
  const pid_t program = start_program(uuids_[1].c_str(), [&] {
    CUcontext context = nullptr;
    CUdeviceptr address = 0;
    ASSERT_EQ(CU(cuInit)(0), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuCtxCreate_v2)(&context, 0, 0), CUDA_SUCCESS);
    std::size_t free_bytes = 0;
    std::size_t total = 0;
    EXPECT_EQ(CU(cuMemGetInfo_v2)(&free_bytes, &total), CUDA_SUCCESS);
    EXPECT_EQ(CU(cuMemAlloc_v2)(&address, free_bytes + 2 * kMiB), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_EQ(CU(cuMemAlloc_v2)(&address, 1024 * kMiB), CUDA_SUCCESS);
    char byte = 0;
    EXPECT_EQ(write(done[1], &byte, 1), 1);
    EXPECT_EQ(read(go[0], &byte, 1), 1);
  });
  char byte = 0;
  ASSERT_EQ(read(done[0], &byte, 1), 1);
  EXPECT_GE(memory(devices_[1]).used, 1024 * kMiB);
  EXPECT_EQ(memory(devices_[0]).used, 0u);
  EXPECT_GE(memory(gpu_).used, 1024 * kMiB);
  std::array<nvmlProcessInfo_t, 4> processes{};
  unsigned count = processes.size();
  ASSERT_EQ(NV(nvmlDeviceGetComputeRunningProcesses_v3)(devices_[1], &count, processes.data()),
            NVML_SUCCESS);
  ASSERT_EQ(count, 1u);
  EXPECT_EQ(processes[0].pid, static_cast<unsigned>(program));
  EXPECT_NE(processes[0].gpu_instance, 0xffffffffu);
  // No instance goes from under a program.
  EXPECT_EQ(NV(nvmlComputeInstanceDestroy)(compute_[1]), NVML_ERROR_IN_USE);
  ASSERT_EQ(write(go[1], &byte, 1), 1);
  EXPECT_EQ(end_of(program), 0);
  for (const int fd : {go[0], go[1], done[0], done[1]}) close(fd);
  for (int i = 0; i < 5000 && memory(devices_[1]).used != 0; ++i) usleep(1000);
  EXPECT_EQ(memory(devices_[1]).used, 0u);
}

TEST_F(Mig, AKernelHasTheInstancesMultiprocessorsAndNoOther) {
  EXPECT_EQ(
      end_of(start_program(
          uuids_[0].c_str(),
          [] {
            CUcontext context = nullptr;
            ASSERT_EQ(CU(cuInit)(0), CUDA_SUCCESS);
            ASSERT_EQ(CU(cuCtxCreate_v2)(&context, 0, 0), CUDA_SUCCESS);
            int blocks = 0;
            int value = 0;
            EXPECT_EQ(CU(cuDeviceGetAttribute)(&value, CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 0),
                      CUDA_SUCCESS);
            EXPECT_EQ(value, 3);
            CUmodule module = nullptr;
            CUfunction kernel = nullptr;
            ASSERT_EQ(CU(cuModuleLoadData)(&module,
                                           ".version 7.0\n.target sm_50\n.visible .entry any() "
                                           "{ ret; }\n"),
                      CUDA_SUCCESS);
            ASSERT_EQ(CU(cuModuleGetFunction)(&kernel, module, "any"), CUDA_SUCCESS);
            EXPECT_EQ(CU(cuOccupancyMaxActiveBlocksPerMultiprocessor)(&blocks, kernel, 1024, 0),
                      CUDA_SUCCESS);
            // A cooperative grid fits on what there is, and not on one block more.
            const auto most = static_cast<unsigned>(blocks * 42);
            EXPECT_EQ(
                CU(cuLaunchCooperativeKernel)(kernel, most, 1, 1, 1024, 1, 1, 0, nullptr, nullptr),
                CUDA_SUCCESS);
            EXPECT_EQ(CU(cuLaunchCooperativeKernel)(kernel, most + 1, 1, 1, 1024, 1, 1, 0, nullptr,
                                                    nullptr),
                      CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
          })),
      0);
}

}  // namespace
}  // namespace aliquot::simdriver
