#include "simdriver/mig_instance.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "simdriver/presets.h"

namespace aliquot::simdriver {
namespace {

const GpuModel& a100() {
  static const MachineSpec machine =
      *make_machine({.node = "a100x1", .name = "lab", .cuda = ""}, *simulator_directory());
  return machine.models[0];
}

const MigProfile& profile(const std::string& name) {
  return *std::ranges::find(a100().mig, name, &MigProfile::name);
}

TEST(MigInstance, HasItsPartOfTheGpu) {
  const GpuModel part = model_of_instance(a100(), profile("3g.40gb"), 3);
  EXPECT_EQ(part.product, "NVIDIA A100-SXM4-80GB MIG 3g.40gb");
  EXPECT_EQ(part.sms, 42u);
  EXPECT_EQ(part.memory.driver_total_bytes, profile("3g.40gb").memory_mib << 20);
  EXPECT_EQ(part.memory.bus_bits, a100().memory.bus_bits / 2);
  EXPECT_EQ(part.copy_engines, 3u);
  EXPECT_EQ(part.nvlink.links, 0u);
  EXPECT_TRUE(part.mig.empty());
}

TEST(MigInstance, OfSomeSlicesSharesTheMemoryButNotTheMultiprocessors) {
  const GpuModel part = model_of_instance(a100(), profile("3g.40gb"), 1);
  EXPECT_EQ(part.product, "NVIDIA A100-SXM4-80GB MIG 1c.3g.40gb");
  EXPECT_EQ(part.sms, 14u);
  EXPECT_EQ(part.memory.driver_total_bytes, profile("3g.40gb").memory_mib << 20);
}

TEST(MigInstance, IsKnownByWhereItLies) {
  const Uuid gpu{0x10, 0x20};
  const GpuInstance parent{.id = 2, .profile = 9, .start = 4, .size = 4};
  const ComputeInstance own{.id = 0, .gpu_instance = 2, .start = 0, .slices = 3};
  const Uuid uuid = mig_device_uuid(gpu, parent, own);
  EXPECT_NE(uuid, gpu);
  GpuInstance moved = parent;
  moved.id = 5;
  EXPECT_EQ(mig_device_uuid(gpu, moved, own), uuid);
  moved.start = 0;
  EXPECT_NE(mig_device_uuid(gpu, moved, own), uuid);
  EXPECT_EQ(mig_uuid_text(uuid).substr(0, 8), "MIG-4a20");
}

}  // namespace
}  // namespace aliquot::simdriver
