// A running simulated machine: what its NVML says of it is what it was made of, and `aliquot topo`
// and `aliquot inventory` show it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "cli/machine_topology.h"
#include "cli/program.h"
#include "inventory/document.h"
#include "inventory/health.h"
#include "inventory/nvml.h"
#include "simdriver/machine.h"
#include "simdriver/presets.h"

namespace aliquot::cli {
namespace {

namespace fs = std::filesystem;
using testing::StartsWith;

class RunningMachine : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "aliquot-topo-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    state_ = name;
    ASSERT_EQ(setenv("ALIQUOT_STATE_DIR", name.c_str(), 1), 0);
    const auto simulator = simdriver::simulator_directory();
    ASSERT_TRUE(simulator) << simulator.error().message;
    const auto spec = simdriver::make_machine({GetParam(), "lab", {}}, *simulator);
    ASSERT_TRUE(spec) << spec.error().message;
    spec_ = *spec;
    const auto machine = simdriver::start_machine(spec_, *simulator);
    ASSERT_TRUE(machine) << machine.error().message;
    machine_ = *machine;
  }
  void TearDown() override {
    EXPECT_TRUE(simdriver::stop_machine("lab"));
    unsetenv("ALIQUOT_STATE_DIR");
    fs::remove_all(state_);
  }

  fs::path state_;
  simdriver::MachineSpec spec_;
  simdriver::RunningMachine machine_;
};

TEST_P(RunningMachine, TellsItsLinksThroughNvml) {
  const auto nvml = inventory::open_nvml(machine_.library_directory() / "libnvidia-ml.so.1");
  ASSERT_TRUE(nvml) << nvml.error().message;
  const auto told = inventory::topology_from(**nvml);
  ASSERT_TRUE(told) << told.error().message;
  const model::NodeTopology made = topology_of(spec_);
  ASSERT_EQ(told->gpu_count(), made.gpu_count());
  for (std::size_t a = 0; a < made.gpu_count(); ++a) {
    EXPECT_EQ(told->gpus()[a], made.gpus()[a]);
    for (std::size_t b = 0; b < a; ++b)
      EXPECT_EQ(model::link_text(told->link(a, b)), model::link_text(made.link(a, b)));
  }
}

TEST_P(RunningMachine, IsShownByName) {
  std::ostringstream out;
  std::ostringstream err;
  Invocation invocation{out, err, {"aliquot", "topo", "--sim", "lab"}};
  EXPECT_EQ(run_program(invocation), 0) << err.str();
  EXPECT_THAT(out.str(), StartsWith("simulated machine lab: "));
}

TEST_P(RunningMachine, IsInventoriedByName) {
  std::ostringstream out;
  std::ostringstream err;
  Invocation invocation{out, err, {"aliquot", "inventory", "--sim", "lab", "--json"}};
  EXPECT_EQ(run_program(invocation), 0) << err.str();
  const auto all = inventory::parse_inventory(out.str(), "stdout");
  ASSERT_TRUE(all) << all.error().message;
  EXPECT_TRUE(all->simulated);
  ASSERT_EQ(all->gpus.size(), spec_.gpus.size());
  const auto& model = spec_.models[spec_.gpus[0].model];
  EXPECT_EQ(all->gpus[0].memory_bytes, model.memory.nvml_total_bytes);
  EXPECT_EQ(all->gpus[0].bar1_bytes, model.memory.bar1_bytes);
  EXPECT_EQ(all->topology.gpu_count(), all->gpus.size());
  for (const auto& gpu : all->gpus) EXPECT_EQ(gpu.nearest_nic.empty(), spec_.nics.empty());
}

// The machine's own /sys must tell the same distances as its driver.
TEST_P(RunningMachine, HasASysWhoseBridgesGiveItsDistances) {
  const auto pci = inventory::read_pci(inventory::Sysfs(machine_.directory / "sys"));
  std::vector<inventory::PciDevice> gpus;
  std::vector<inventory::PciDevice> nics;
  for (const inventory::PciDevice& device : pci)
    (device.kind == inventory::PciKind::kGpu ? gpus : nics).push_back(device);
  ASSERT_EQ(gpus.size(), spec_.gpus.size());
  ASSERT_EQ(nics.size(), spec_.nics.size());
  const auto kind = [](simdriver::PciePath path) {
    return static_cast<model::LinkKind>(static_cast<int>(model::LinkKind::kPix) +
                                        static_cast<int>(path) - 1);
  };
  for (std::size_t a = 0; a < gpus.size(); ++a) {
    EXPECT_THAT("0000" + gpus[a].bus_id, testing::StrCaseEq(spec_.gpus[a].pci.text()));
    EXPECT_EQ(gpus[a].payload_bytes, 256);
    EXPECT_EQ(gpus[a].most.width, spec_.model_of(static_cast<unsigned>(a)).pcie.width);
    for (std::size_t b = 0; b < a; ++b)
      EXPECT_EQ(inventory::path_between(gpus[a], gpus[b]), kind(spec_.pcie[a][b])) << a << b;
    for (std::size_t n = 0; n < nics.size(); ++n)
      EXPECT_EQ(inventory::path_between(nics[n], gpus[a]), kind(spec_.nics[n].to_gpu[a])) << n << a;
  }
}

TEST_P(RunningMachine, IsHealthyWhenItStarts) {
  const auto nvml = inventory::open_nvml(machine_.library_directory() / "libnvidia-ml.so.1");
  ASSERT_TRUE(nvml) << nvml.error().message;
  for (unsigned gpu = 0; gpu < spec_.gpus.size(); ++gpu) {
    const auto reading = (*nvml)->health(gpu);
    ASSERT_TRUE(reading) << reading.error().message;
    EXPECT_FALSE(reading->off_bus);
    ASSERT_TRUE(reading->temperature_c && reading->slowdown_c);
    EXPECT_LT(*reading->temperature_c, *reading->slowdown_c);
    EXPECT_EQ(reading->nvlinks_up.empty(), spec_.models[spec_.gpus[gpu].model].nvlink.links == 0);
    inventory::GpuHealth health;
    health.on_probe(*reading, 0);
    EXPECT_EQ(health.state(), inventory::HealthState::kHealthy);
  }
  EXPECT_EQ((*nvml)->health(64).error().code, Errc::kInvalid);
}

INSTANTIATE_TEST_SUITE_P(Presets, RunningMachine, testing::Values("dgx1-v100", "a100x8", "l40sx4"));

}  // namespace
}  // namespace aliquot::cli
