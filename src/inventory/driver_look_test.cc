// The look at a driver of which calls hang: a FakeNvml whose calls never return for some GPUs.
#include "inventory/driver_look.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace aliquot::inventory {
namespace {

constexpr LookLimits kShort{200 * kMillisecond, 2 * kSecond, 500 * kMillisecond,
                            300 * kMillisecond};

struct Hangs {
  bool init = false;
  int state_of = -1, gpu = -1;
};

// Three GPUs.
FakeNvml three_gpus() {
  FakeNvml nvml;
  for (unsigned i = 0; i < 3; ++i) {
    NvmlGpu gpu;
    gpu.uuid = "GPU-" + std::to_string(i);
    gpu.numa = 1;
    nvml.gpu_answers.push_back(gpu);
    NvmlState state;
    state.memory = {100, 10, 20 + i, 70};
    state.power_mw = 1000 * i;
    state.processes.push_back({7, 5, ProcessKind::kMps});
    nvml.state_answers.push_back(state);
  }
  return nvml;
}

void hang_if(bool yes) {
  if (!yes) return;
  for (;;) ::pause();
}

class HangingNvml final : public Nvml {
 public:
  explicit HangingNvml(const Hangs& hangs) : hangs_(hangs) {}
  Result<NvmlSystem> system() override { return fake_.system(); }
  Result<unsigned> count() override { return fake_.count(); }
  Result<NvmlGpu> gpu(unsigned gpu) override {
    hang_if(static_cast<int>(gpu) == hangs_.gpu);
    return fake_.gpu(gpu);
  }
  Result<unsigned> index_at(const std::string& bus_id) override { return fake_.index_at(bus_id); }
  Result<NvmlState> state(unsigned gpu) override {
    hang_if(static_cast<int>(gpu) == hangs_.state_of);
    return fake_.state(gpu);
  }
  Result<NvmlHeld> held(unsigned gpu) override { return fake_.held(gpu); }
  Result<HealthReading> health(unsigned gpu) override { return fake_.health(gpu); }
  Result<std::vector<NvmlUse>> use(unsigned gpu, std::uint64_t after_us) override {
    return fake_.use(gpu, after_us);
  }
  Result<model::LinkKind> path(unsigned a, unsigned b) override { return fake_.path(a, b); }
  Result<std::vector<NvmlNvlink>> nvlinks(unsigned gpu) override { return fake_.nvlinks(gpu); }
  Result<NvmlMig> mig(unsigned gpu) override { return fake_.mig(gpu); }
  Result<std::optional<unsigned>> wait_for_xid(unsigned gpu,
                                               std::chrono::milliseconds limit) override {
    return fake_.wait_for_xid(gpu, limit);
  }

 private:
  Hangs hangs_;
  FakeNvml fake_ = three_gpus();
};

NvmlOpener opener(const Hangs& hangs) {
  return [hangs]() -> Result<std::unique_ptr<Nvml>> {
    hang_if(hangs.init);
    return std::unique_ptr<Nvml>(std::make_unique<HangingNvml>(hangs));
  };
}

TEST(DriverLook, GivesWhatNvmlSaysOfEveryGpu) {
  const FakeNvml nvml = three_gpus();
  const auto look = look_at_driver(opener({}), {});
  ASSERT_TRUE(look) << look.error().message;
  EXPECT_EQ(look->system, nvml.system_answer);
  ASSERT_EQ(look->gpus.size(), 3u);
  for (unsigned i = 0; i < 3; ++i)
    EXPECT_EQ(look->gpus[i], (GpuAnswer{i, nvml.gpu_answers[i], nvml.state_answers[i], ""}));
}

TEST(DriverLook, AGpuThatHangsIsNamedAndTheOthersAreShown) {
  const Nanoseconds began = MonotonicClock().now();
  const auto look = look_at_driver(opener({.state_of = 1}), kShort);
  EXPECT_LT(MonotonicClock().now() - began, 5 * kSecond);
  ASSERT_TRUE(look) << look.error().message;
  EXPECT_EQ(look->gpus[0].state.power_mw, 0u);
  EXPECT_EQ(look->gpus[2].state.power_mw, 2000u);
  EXPECT_EQ(look->gpus[2].trouble, "");
  EXPECT_EQ(look->gpus[1].gpu.uuid, "GPU-1");  // who it is it still says
  EXPECT_NE(look->gpus[1].trouble.find("NVML does not answer about it"), std::string::npos);
}

TEST(DriverLook, AGpuThatDoesNotEvenSayWhoItIsHasItsIndex) {
  const auto look = look_at_driver(opener({.gpu = 0}), kShort);
  ASSERT_TRUE(look) << look.error().message;
  EXPECT_EQ(look->gpus[0].gpu, NvmlGpu());
  EXPECT_FALSE(look->gpus[0].trouble.empty());
  EXPECT_EQ(look->gpus[1].gpu.uuid, "GPU-1");
}

TEST(DriverLook, ADriverThatDoesNotComeUpIsAnErrorInTime) {
  LookLimits limits = kShort;
  limits.driver = 300 * kMillisecond;
  const auto look = look_at_driver(opener({.init = true}), limits);
  ASSERT_FALSE(look);
  EXPECT_EQ(look.error().code, Errc::kUnavailable);
}

TEST(DriverLook, AnErrorOfTheDriverKeepsItsCodeAndWords) {
  const Error refused{Errc::kDenied, "nvmlInit_v2: insufficient permissions"};
  const auto look =
      look_at_driver([&]() -> Result<std::unique_ptr<Nvml>> { return refused; }, kShort);
  ASSERT_FALSE(look);
  EXPECT_EQ(look.error(), refused);
}

}  // namespace
}  // namespace aliquot::inventory
