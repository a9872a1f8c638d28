#include <gtest/gtest.h>

#include <array>
#include <memory>

#include "simdriver/nvml/bodies.h"
#include "simdriver/nvml/fake_telemetry.h"
#include "simdriver/nvml/library.h"
#include "simdriver/presets.h"

namespace aliquot::simdriver::nvml {
namespace {

using namespace bodies;

class NvmlMig : public testing::Test {
 protected:
  void SetUp() override {
    const MachineSpec machine =
        *make_machine({.node = "a100x2", .name = "lab", .cuda = ""}, *simulator_directory());
    Library::instance().use(machine, std::make_unique<FakeTelemetry>(machine));
    ASSERT_EQ(nvmlInit_v2(), NVML_SUCCESS);
    ASSERT_EQ(nvmlDeviceGetHandleByIndex_v2(0, &gpu_), NVML_SUCCESS);
  }
  void TearDown() override { nvmlShutdown(); }

  void switch_on() {
    nvmlReturn_t activation = -1;
    ASSERT_EQ(nvmlDeviceSetMigMode(gpu_, NVML_DEVICE_MIG_ENABLE, &activation), NVML_SUCCESS);
    EXPECT_EQ(activation, NVML_SUCCESS);
  }
  // A GPU instance filled by one compute instance.
  nvmlGpuInstance_t create(unsigned profile, unsigned compute_profile) {
    nvmlGpuInstance_t instance = nullptr;
    nvmlComputeInstance_t compute = nullptr;
    EXPECT_EQ(nvmlDeviceCreateGpuInstance(gpu_, profile, &instance), NVML_SUCCESS);
    EXPECT_EQ(nvmlGpuInstanceCreateComputeInstance(instance, compute_profile, &compute),
              NVML_SUCCESS);
    return instance;
  }

  nvmlDevice_t gpu_ = nullptr;
};

TEST_F(NvmlMig, IsOffUntilSwitchedOn) {
  unsigned current = 9;
  unsigned pending = 9;
  nvmlGpuInstance_t instance = nullptr;
  EXPECT_EQ(nvmlDeviceCreateGpuInstance(gpu_, 19, &instance), NVML_ERROR_NOT_SUPPORTED);
  ASSERT_EQ(nvmlDeviceGetMigMode(gpu_, &current, &pending), NVML_SUCCESS);
  EXPECT_EQ(current, 0u);
  switch_on();
  ASSERT_EQ(nvmlDeviceGetMigMode(gpu_, &current, &pending), NVML_SUCCESS);
  EXPECT_EQ(current, 1u);
  EXPECT_EQ(pending, 1u);
}

TEST_F(NvmlMig, ADeviceOfAnInstanceIsAPartOfTheGpu) {
  switch_on();
  create(9, NVML_COMPUTE_INSTANCE_PROFILE_3_SLICE);
  nvmlDevice_t mig = nullptr;
  ASSERT_EQ(nvmlDeviceGetMigDeviceHandleByIndex(gpu_, 0, &mig), NVML_SUCCESS);
  EXPECT_EQ(nvmlDeviceGetMigDeviceHandleByIndex(gpu_, 1, &mig), NVML_ERROR_NOT_FOUND);
  std::array<char, 96> text{};
  ASSERT_EQ(nvmlDeviceGetName(mig, text.data(), 96), NVML_SUCCESS);
  EXPECT_STREQ(text.data(), "NVIDIA A100-SXM4-80GB MIG 3g.40gb");
  ASSERT_EQ(nvmlDeviceGetUUID(mig, text.data(), 96), NVML_SUCCESS);
  EXPECT_EQ(std::string(text.data()).substr(0, 4), "MIG-");
  nvmlDeviceAttributes_t attributes{};
  ASSERT_EQ(nvmlDeviceGetAttributes_v2(mig, &attributes), NVML_SUCCESS);
  EXPECT_EQ(attributes.multiprocessors, 42u);
  EXPECT_EQ(attributes.compute_slices, 3u);
  nvmlMemory_t memory{};
  ASSERT_EQ(nvmlDeviceGetMemoryInfo(mig, &memory), NVML_SUCCESS);
  EXPECT_EQ(memory.total, attributes.memory_mib << 20);
  nvmlDevice_t parent = nullptr;
  ASSERT_EQ(nvmlDeviceGetDeviceHandleFromMigDeviceHandle(mig, &parent), NVML_SUCCESS);
  EXPECT_EQ(parent, gpu_);
  unsigned is_mig = 0;
  ASSERT_EQ(nvmlDeviceIsMigDeviceHandle(mig, &is_mig), NVML_SUCCESS);
  EXPECT_EQ(is_mig, 1u);
}

TEST_F(NvmlMig, PartsOfAnInstanceAreNamedBySlices) {
  switch_on();
  nvmlGpuInstance_t instance = create(9, NVML_COMPUTE_INSTANCE_PROFILE_1_SLICE);
  nvmlDevice_t mig = nullptr;
  ASSERT_EQ(nvmlDeviceGetMigDeviceHandleByIndex(gpu_, 0, &mig), NVML_SUCCESS);
  std::array<char, 96> text{};
  ASSERT_EQ(nvmlDeviceGetName(mig, text.data(), 96), NVML_SUCCESS);
  EXPECT_STREQ(text.data(), "NVIDIA A100-SXM4-80GB MIG 1c.3g.40gb");
  unsigned left = 0;
  ASSERT_EQ(nvmlGpuInstanceGetComputeInstanceRemainingCapacity(
                instance, NVML_COMPUTE_INSTANCE_PROFILE_1_SLICE, &left),
            NVML_SUCCESS);
  EXPECT_EQ(left, 2u);
}

TEST_F(NvmlMig, CapacityFallsAsInstancesComeAndRisesAsTheyGo) {
  switch_on();
  unsigned left = 0;
  ASSERT_EQ(nvmlDeviceGetGpuInstanceRemainingCapacity(gpu_, 19, &left), NVML_SUCCESS);
  EXPECT_EQ(left, 7u);
  nvmlGpuInstance_t instance = nullptr;
  ASSERT_EQ(nvmlDeviceCreateGpuInstance(gpu_, 9, &instance), NVML_SUCCESS);
  ASSERT_EQ(nvmlDeviceGetGpuInstanceRemainingCapacity(gpu_, 19, &left), NVML_SUCCESS);
  EXPECT_EQ(left, 3u);
  EXPECT_EQ(nvmlGpuInstanceDestroy(instance), NVML_SUCCESS);
  ASSERT_EQ(nvmlDeviceGetGpuInstanceRemainingCapacity(gpu_, 19, &left), NVML_SUCCESS);
  EXPECT_EQ(left, 7u);
}

TEST_F(NvmlMig, HandlesOfWhatIsGoneSaySo) {
  switch_on();
  nvmlGpuInstance_t instance = create(19, NVML_COMPUTE_INSTANCE_PROFILE_1_SLICE);
  nvmlDevice_t mig = nullptr;
  ASSERT_EQ(nvmlDeviceGetMigDeviceHandleByIndex(gpu_, 0, &mig), NVML_SUCCESS);
  nvmlComputeInstance_t compute = nullptr;
  ASSERT_EQ(nvmlGpuInstanceGetComputeInstanceById(instance, 0, &compute), NVML_SUCCESS);
  nvmlComputeInstanceInfo_t info{};
  ASSERT_EQ(nvmlComputeInstanceGetInfo_v2(compute, &info), NVML_SUCCESS);
  EXPECT_EQ(info.gpu_instance, instance);
  EXPECT_EQ(info.device, gpu_);
  EXPECT_EQ(nvmlComputeInstanceDestroy(compute), NVML_SUCCESS);
  EXPECT_EQ(nvmlGpuInstanceDestroy(instance), NVML_SUCCESS);
  nvmlGpuInstanceInfo_t gone{};
  nvmlDeviceAttributes_t attributes{};
  EXPECT_EQ(nvmlGpuInstanceGetInfo(instance, &gone), NVML_ERROR_NOT_FOUND);
  EXPECT_EQ(nvmlComputeInstanceGetInfo_v2(compute, &info), NVML_ERROR_NOT_FOUND);
  EXPECT_EQ(nvmlDeviceGetAttributes_v2(mig, &attributes), NVML_ERROR_NOT_FOUND);
}

}  // namespace
}  // namespace aliquot::simdriver::nvml
