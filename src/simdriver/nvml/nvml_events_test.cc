#include <gtest/gtest.h>

#include <memory>
#include <thread>

#include "simdriver/nvml/bodies.h"
#include "simdriver/nvml/fake_telemetry.h"
#include "simdriver/nvml/library.h"
#include "simdriver/presets.h"

namespace aliquot::simdriver::nvml {
namespace {

using namespace bodies;

// FakeTelemetry is for one thread; a server is not.
class LockedTelemetry final : public TelemetrySource {
 public:
  explicit LockedTelemetry(const MachineSpec& machine) : fake_(machine) {}
  void report_xid(unsigned gpu, std::uint64_t xid) {
    const std::lock_guard lock(mutex_);
    fake_.board.report_xid(gpu, xid);
  }
  nvmlReturn_t read(unsigned gpu, GpuReading& out) override {
    const std::lock_guard lock(mutex_);
    return fake_.read(gpu, out);
  }
  nvmlReturn_t samples(const SamplesRequest& request, std::vector<Sample>& out) override {
    const std::lock_guard lock(mutex_);
    return fake_.samples(request, out);
  }
  nvmlReturn_t events(std::uint64_t serial, std::uint64_t& newest,
                      std::vector<GpuEvent>& out) override {
    const std::lock_guard lock(mutex_);
    return fake_.events(serial, newest, out);
  }
  nvmlReturn_t set(const SetRequest& request) override {
    const std::lock_guard lock(mutex_);
    return fake_.set(request);
  }
  nvmlReturn_t mig(unsigned gpu, MigReading& out) override { return fake_.mig(gpu, out); }
  nvmlReturn_t change_mig(const MigChange& change, unsigned& id) override {
    return fake_.change_mig(change, id);
  }

 private:
  std::mutex mutex_;
  FakeTelemetry fake_;
};

class NvmlEvents : public testing::Test {
 protected:
  void SetUp() override {
    const MachineSpec machine =
        *make_machine({.node = "a100x2", .name = "lab", .cuda = ""}, *simulator_directory());
    auto telemetry = std::make_unique<LockedTelemetry>(machine);
    telemetry_ = telemetry.get();
    Library::instance().use(machine, std::move(telemetry));
    ASSERT_EQ(nvmlInit_v2(), NVML_SUCCESS);
    ASSERT_EQ(nvmlEventSetCreate(&set_), NVML_SUCCESS);
  }
  void TearDown() override {
    nvmlEventSetFree(set_);
    nvmlShutdown();
  }
  nvmlDevice_t gpu(unsigned index) {
    nvmlDevice_t device = nullptr;
    EXPECT_EQ(nvmlDeviceGetHandleByIndex_v2(index, &device), NVML_SUCCESS);
    return device;
  }
  LockedTelemetry* telemetry_ = nullptr;
  nvmlEventSet_t set_ = nullptr;
  nvmlEventData_t data_{};
};

TEST_F(NvmlEvents, TellsTheXidsOfRegisteredGpusOnlyOnceAndInOrder) {
  telemetry_->report_xid(0, 1);  // before anybody registered
  ASSERT_EQ(nvmlDeviceRegisterEvents(gpu(1), nvmlEventTypeXidCriticalError, set_), NVML_SUCCESS);
  telemetry_->report_xid(1, 31);
  telemetry_->report_xid(0, 48);
  telemetry_->report_xid(1, 79);
  ASSERT_EQ(nvmlEventSetWait_v2(set_, &data_, 0), NVML_SUCCESS);
  EXPECT_EQ(data_.device, gpu(1));
  EXPECT_EQ(data_.type, nvmlEventTypeXidCriticalError);
  EXPECT_EQ(data_.data, 31u);
  ASSERT_EQ(nvmlEventSetWait_v2(set_, &data_, 0), NVML_SUCCESS);
  EXPECT_EQ(data_.data, 79u);
  EXPECT_EQ(nvmlEventSetWait_v2(set_, &data_, 0), NVML_ERROR_TIMEOUT);
}

TEST_F(NvmlEvents, AWaitEndsWhenTheEventComesAndNotBefore) {
  ASSERT_EQ(nvmlDeviceRegisterEvents(gpu(0), nvmlEventTypeXidCriticalError, set_), NVML_SUCCESS);
  std::thread later([this] {
    std::this_thread::sleep_for(std::chrono::milliseconds(60));
    telemetry_->report_xid(0, 13);
  });
  EXPECT_EQ(nvmlEventSetWait_v2(set_, &data_, 10), NVML_ERROR_TIMEOUT);
  EXPECT_EQ(nvmlEventSetWait_v2(set_, &data_, 10'000), NVML_SUCCESS);
  EXPECT_EQ(data_.data, 13u);
  later.join();
}

TEST_F(NvmlEvents, RefusesTypesItCannotSeeAndSetsItDoesNotKnow) {
  EXPECT_EQ(nvmlDeviceRegisterEvents(gpu(0), nvmlEventTypePState, set_), NVML_ERROR_NOT_SUPPORTED);
  int not_a_set = 0;
  const auto foreign = reinterpret_cast<nvmlEventSet_t>(&not_a_set);
  EXPECT_EQ(nvmlEventSetWait_v2(foreign, &data_, 0), NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(nvmlEventSetFree(foreign), NVML_ERROR_INVALID_ARGUMENT);
}

TEST_F(NvmlEvents, ShutdownEndsAWaitElsewhere) {
  std::thread waiting([this] {
    nvmlEventData_t data{};
    EXPECT_EQ(nvmlEventSetWait_v2(set_, &data, 10'000), NVML_ERROR_UNINITIALIZED);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  EXPECT_EQ(nvmlShutdown(), NVML_SUCCESS);
  waiting.join();
}

}  // namespace
}  // namespace aliquot::simdriver::nvml
