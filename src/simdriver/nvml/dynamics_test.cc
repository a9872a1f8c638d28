#include "simdriver/nvml/dynamics.h"

#include <gtest/gtest.h>

#include "simdriver/presets.h"

namespace aliquot::simdriver::nvml {
namespace {

GpuModel model(const char* node) {
  return make_machine({.node = node, .name = "", .cuda = ""}, *simulator_directory())->models[0];
}

GpuTelemetry at(unsigned percent) {
  GpuTelemetry now{};
  now.gpu_percent = percent;
  return now;
}

TEST(Dynamics, AnIdleGpuRestsInItsLowestClockAndPower) {
  const Dynamics a100 = dynamics_of(model("a100x8"), at(0));
  EXPECT_TRUE(a100.idle);
  EXPECT_EQ(a100.graphics_mhz, 210u);
  EXPECT_EQ(a100.memory_mhz, 1593u);  // HBM keeps its clock, so the GPU its P0
  EXPECT_EQ(a100.performance_state, 0u);
  EXPECT_EQ(a100.power_mw, 62'000u);
  const Dynamics t4 = dynamics_of(model("t4x1"), at(0));
  EXPECT_EQ(t4.performance_state, 8u);
  EXPECT_EQ(t4.pcie_generation, 1u);
}

TEST(Dynamics, PowerAndHeatFollowUtilisation) {
  const GpuModel a100 = model("a100x8");
  // 62 W idle, 400 W limit: 62 + 0.9 * 338 = 366.2 W at full load.
  EXPECT_EQ(dynamics_of(a100, at(100)).power_mw, 366'200u);
  EXPECT_EQ(dynamics_of(a100, at(50)).power_mw, 214'100u);
  EXPECT_EQ(dynamics_of(a100, at(100)).temperature_c, 58u);
  EXPECT_EQ(dynamics_of(a100, at(100)).graphics_mhz, 1410u);
}

TEST(Dynamics, LimitsHold) {
  const GpuModel a100 = model("a100x8");
  GpuTelemetry now = at(100);
  now.power_limit_mw = 250'000;
  now.clock_limit_mhz = 1200;
  EXPECT_EQ(dynamics_of(a100, now).power_mw, 231'200u);
  EXPECT_EQ(dynamics_of(a100, now).graphics_mhz, 1200u);
  EXPECT_EQ(power_limit_mw(a100, now), 250'000u);
}

TEST(Dynamics, AWaitingProcessKeepsTheClocksUp) {
  GpuTelemetry now = at(0);
  now.process_count = 1;
  EXPECT_EQ(dynamics_of(model("a100x8"), now).graphics_mhz, 1410u);
  EXPECT_EQ(dynamics_of(model("a100x8"), now).power_mw, 62'000u);
}

TEST(Dynamics, EnergyIsPowerOverTime) {
  GpuTelemetry now = at(0);
  now.now_ns = 10'000'000'000;  // 10 s of idle: 620 J
  EXPECT_EQ(dynamics_of(model("a100x8"), now).energy_mj, 620'000u);
  now.busy_ns = 5'000'000'000;  // half of it busy: 5 s at 304.2 W more
  EXPECT_EQ(dynamics_of(model("a100x8"), now).energy_mj, 620'000u + 1'521'000u);
}

}  // namespace
}  // namespace aliquot::simdriver::nvml
