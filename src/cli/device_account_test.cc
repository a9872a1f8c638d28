// What a real driver's samples add up to.
#include "cli/device_account.h"

#include <gtest/gtest.h>

namespace aliquot::cli {
namespace {

struct SampledAccountTest : ::testing::Test {
  inventory::FakeNvml nvml;
  SteppedClock clock;
  SampledAccount account{nvml, clock, 0};

  void SetUp() override {
    nvml.gpu_answers.resize(1);
    nvml.use_answers.resize(1);
  }
  simdriver::DeviceUse read(std::vector<inventory::NvmlUse> samples) {
    nvml.use_answers[0] = std::move(samples);
    const auto use = account.read();
    EXPECT_TRUE(use);
    return use ? *use : simdriver::DeviceUse{};
  }
};

TEST_F(SampledAccountTest, APercentIsAHundredthOfTheTimeSinceTheSampleBefore) {
  read({{7, 1'000'000, 30}});
  const Nanoseconds before = read({{7, 1'000'000, 30}}).of.at(7);
  EXPECT_EQ(read({{7, 1'200'000, 50}}).of.at(7) - before, 100 * kMillisecond);
}

TEST_F(SampledAccountTest, ASampleThatIsToldTwiceCountsOnce) {
  const Nanoseconds once = read({{7, 1'000'000, 30}}).busy;
  EXPECT_EQ(read({{7, 1'000'000, 30}}).busy, once);
  EXPECT_EQ(once, 30 * (kSecond / 6 / 1000) * 10);
}

TEST_F(SampledAccountTest, ProcessesAreToldApart) {
  read({{7, 1'000'000, 30}, {8, 1'000'000, 60}});
  const auto use = read({{7, 1'166'666, 30}, {8, 1'166'666, 60}});
  EXPECT_EQ(2 * use.of.at(7), use.of.at(8));
  EXPECT_EQ(use.busy, use.of.at(7) + use.of.at(8));
}

TEST_F(SampledAccountTest, AGapOfManyPeriodsIsNotTakenForWork) {
  read({{7, 1'000'000, 50}});
  const Nanoseconds before = read({{7, 1'000'000, 50}}).of.at(7);
  EXPECT_LT(read({{7, 60'000'000, 50}}).of.at(7) - before, kSecond / 2);
}

}  // namespace
}  // namespace aliquot::cli
