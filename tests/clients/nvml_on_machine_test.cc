// The NVML wrapper of inventory on a simulated machine: library, channel and server together.

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "inventory/nvml.h"
#include "simdriver/faults.h"
#include "simdriver/machine.h"
#include "simdriver/presets.h"

namespace aliquot {
namespace {

namespace fs = std::filesystem;

class NvmlOnMachine : public testing::Test {
 protected:
  void SetUp() override {
    std::string state = (fs::temp_directory_path() / "aliquot-nvml-XXXXXX").string();
    ASSERT_NE(mkdtemp(state.data()), nullptr);
    state_ = state;
    setenv("ALIQUOT_STATE_DIR", state_.c_str(), 1);
  }
  void TearDown() override {
    nvml_.reset();
    if (machine_.pid != 0) {
      EXPECT_TRUE(simdriver::stop_machine(machine_.name));
    }
    fs::remove_all(state_);
  }

  void start(const std::string& node, const std::string& cuda = "") {
    const auto directory = simdriver::simulator_directory();
    // A name of its own: a library, once loaded, stays in the process.
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    spec_ =
        *simdriver::make_machine({.node = node, .name = info->name(), .cuda = cuda}, *directory);
    const auto machine = simdriver::start_machine(spec_, *directory);
    ASSERT_TRUE(machine) << machine.error().message;
    machine_ = *machine;
    auto nvml = inventory::open_nvml(machine_.library_directory() / "libnvidia-ml.so.1");
    ASSERT_TRUE(nvml) << nvml.error().message;
    nvml_ = std::move(*nvml);
  }

  Status fault(const simdriver::FaultRequest& request) {
    return simdriver::inject_fault(machine_, request);
  }

  fs::path state_;
  simdriver::MachineSpec spec_;
  simdriver::RunningMachine machine_;
  std::unique_ptr<inventory::Nvml> nvml_;
};

TEST_F(NvmlOnMachine, SaysWhatTheMachineIsMadeOf) {
  start("a100x8");
  EXPECT_EQ(*nvml_->system(), (inventory::NvmlSystem{"580.65.06", "13.580.65.06", 13000}));
  const auto gpus = nvml_->gpus();
  ASSERT_TRUE(gpus) << gpus.error().message;
  ASSERT_EQ(gpus->size(), 8u);
  const inventory::NvmlGpu& last = gpus->back();
  EXPECT_EQ(last.uuid, simdriver::gpu_uuid_text(spec_.gpus[7].uuid));
  EXPECT_EQ(last.name, "NVIDIA A100-SXM4-80GB");
  EXPECT_EQ(last.bus_id, "00000000:BD:00.0");
  EXPECT_EQ(last.numa, 1);
  EXPECT_EQ(last.cpus, "32-63,96-127");
  EXPECT_EQ(last.compute_major, 8);
  EXPECT_TRUE(last.mig_capable);
}

TEST_F(NvmlOnMachine, AnIdleGpuIsConsistent) {
  start("h100x2");
  const auto state = nvml_->state(1);
  ASSERT_TRUE(state) << state.error().message;
  const inventory::NvmlMemory& memory = state->memory;
  EXPECT_EQ(memory.total_bytes, spec_.model_of(1).memory.nvml_total_bytes);
  EXPECT_EQ(memory.used_bytes, 0u);
  EXPECT_EQ(memory.total_bytes, memory.used_bytes + memory.free_bytes + memory.reserved_bytes);
  EXPECT_TRUE(state->processes.empty());
  EXPECT_EQ(state->gpu_percent, 0u);
  EXPECT_EQ(state->power_mw, spec_.model_of(1).power.idle_mw);
  EXPECT_EQ(state->fan_percent, std::nullopt);
  EXPECT_EQ(state->ecc_uncorrected, 0u);
  EXPECT_EQ(nvml_->state(2).error().code, Errc::kInvalid);
}

TEST_F(NvmlOnMachine, TopologyIsThatOfThePreset) {
  start("dgx1-v100");
  const auto node = inventory::topology_from(*nvml_);
  ASSERT_TRUE(node) << node.error().message;
  for (unsigned a = 0; a < 8; ++a)
    for (unsigned b = 0; b < 8; ++b) EXPECT_EQ(node->link(a, b).nvlinks, spec_.nvlinks[a][b]);
  EXPECT_EQ(node->link(0, 5).kind, model::LinkKind::kSys);
  EXPECT_EQ(node->link(0, 3).kind, model::LinkKind::kNvlink);
  EXPECT_EQ(node->link(0, 3).generation, 2);
}

TEST_F(NvmlOnMachine, FaultsShowAndGoAwayWhenLifted) {
  start("a100x2");
  EXPECT_EQ(*nvml_->wait_for_xid(1, std::chrono::milliseconds(0)), std::nullopt);
  EXPECT_TRUE(fault({1, simdriver::FaultKind::kGpuLost, 0}));
  EXPECT_EQ(*nvml_->wait_for_xid(1, std::chrono::seconds(5)), 79u);
  EXPECT_EQ(nvml_->state(1).error().message, "nvmlDeviceGetMemoryInfo_v2: GPU is lost");
  EXPECT_TRUE(nvml_->state(0));
  EXPECT_TRUE(fault({1, simdriver::FaultKind::kNone, 0}));
  EXPECT_TRUE(nvml_->state(1));
  EXPECT_TRUE(fault({0, simdriver::FaultKind::kNvmlHang, 150}));
  const auto before = std::chrono::steady_clock::now();
  EXPECT_TRUE(nvml_->state(0));
  EXPECT_EQ(fault({5, simdriver::FaultKind::kXid, 13}).error().code, Errc::kInvalid);
  EXPECT_GE(std::chrono::steady_clock::now() - before, std::chrono::milliseconds(150));
}

using inventory::HealthState;

// GPU 1 as the node judges it: by what its probes read, one after the other.
class GpuJudged : public NvmlOnMachine {
 protected:
  HealthState probe() {
    now_ += 60 * kSecond;
    health_.on_probe(*nvml_->health(1), now_);
    return health_.state();
  }

  inventory::GpuHealth health_;

 private:
  Nanoseconds now_ = 0;
};

TEST_F(GpuJudged, ARowThatIsPendingIsADoubtAndOneThatFailedAFaultUntilLifted) {
  start("a100x2");
  const auto remap = [&](simdriver::RowRemap what) {
    return fault({1, simdriver::FaultKind::kRowRemap, static_cast<std::uint64_t>(what)});
  };
  EXPECT_EQ(probe(), HealthState::kHealthy);
  EXPECT_TRUE(remap(simdriver::RowRemap::kPending));
  EXPECT_EQ(probe(), HealthState::kSuspect);
  EXPECT_TRUE(remap(simdriver::RowRemap::kFailed));
  EXPECT_EQ(probe(), HealthState::kUnhealthy);
  EXPECT_TRUE(fault({1, simdriver::FaultKind::kNone, 0}));
  EXPECT_EQ(probe(), HealthState::kRecovering);
  EXPECT_EQ(probe(), HealthState::kHealthy);
}

TEST_F(GpuJudged, ErrorsOfALinkThatGrowTwiceRunningAreAFaultUntilTheyStop) {
  start("a100x2");
  const auto more = [&] {
    return fault({1, simdriver::FaultKind::kLinkErrors, simdriver::errors_of_link(3, 5)});
  };
  EXPECT_EQ(probe(), HealthState::kHealthy);
  EXPECT_TRUE(more());
  EXPECT_EQ(probe(), HealthState::kSuspect);
  EXPECT_EQ(probe(), HealthState::kHealthy);  // a stray one
  EXPECT_TRUE(more());
  EXPECT_EQ(probe(), HealthState::kSuspect);
  EXPECT_TRUE(more());
  EXPECT_EQ(probe(), HealthState::kUnhealthy);
  EXPECT_EQ(health_.faults().at(0).evidence, "5 new errors on NVLinks");
  EXPECT_EQ(probe(), HealthState::kRecovering);
  EXPECT_EQ(probe(), HealthState::kHealthy);
}

TEST_F(NvmlOnMachine, AnOlderDriverHasNotTheNamesThatCameLater) {
  start("t4x1", "11.8");
  EXPECT_EQ(nvml_->system()->driver_version, "520.61.05");
  EXPECT_TRUE(fs::exists(machine_.library_directory() / "libnvidia-ml.so.520.61.05"));
  const auto state = nvml_->state(0);
  ASSERT_TRUE(state) << state.error().message;
  EXPECT_EQ(state->memory.total_bytes, 15360ull << 20);
  const fs::path library = machine_.library_directory() / "libnvidia-ml.so.1";
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(handle, nullptr);
  EXPECT_NE(dlsym(handle, "nvmlDeviceGetTemperature"), nullptr);
  EXPECT_EQ(dlsym(handle, "nvmlDeviceGetTemperatureV"), nullptr);
  dlclose(handle);
}

TEST_F(NvmlOnMachine, AMachineThatEndedIsAnErrorAndNoCrash) {
  start("a100x1");
  ASSERT_TRUE(simdriver::stop_machine(machine_.name));
  machine_.pid = 0;
  EXPECT_EQ(nvml_->state(0).error().code, Errc::kUnavailable);
}

}  // namespace
}  // namespace aliquot
