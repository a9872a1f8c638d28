#include "node/node_health.h"

#include <gtest/gtest.h>

namespace aliquot::node {
namespace {

struct NodeHealthTest : testing::Test {
  NodeHealthTest() {
    board.set_gpus({{"GPU-a", 0, true}, {"GPU-b", 0, true}}, nullptr);
    clock.advance(100 * kSecond);
  }
  bool offered(std::size_t gpu) const { return board.content().gpus[gpu].healthy; }
  // Good readings of GPU-a, one a second.
  void good(int seconds) {
    for (int i = 0; i < seconds; ++i) {
      clock.advance(kSecond);
      health.read("GPU-a", GpuReading{});
    }
  }

  DeviceBoard board;
  SteppedClock clock;
  std::vector<HealthChange> changes;
  NodeHealth health{board, clock, {}, {}, [this](const HealthChange& c) { changes.push_back(c); }};
};

TEST_F(NodeHealthTest, AnXidOfTheHardwareTakesTheGpuAwayAtOnceAndItComesBackByItself) {
  good(5);
  health.xid("GPU-a", 79);
  EXPECT_FALSE(offered(0));
  EXPECT_TRUE(offered(1));
  EXPECT_EQ(health.states().at(0).xids.at(79).count, 1u);
  good(3600);
  EXPECT_TRUE(offered(0));
}

TEST_F(NodeHealthTest, AFaultThatAReadingShowsIsJudgedWithinOneInterval) {
  good(2);
  GpuReading bad;
  bad.health.off_bus = true;
  for (int i = 0; i < 60; ++i) {
    clock.advance(kSecond);
    health.read("GPU-a", bad);
  }
  EXPECT_FALSE(offered(0));
}

TEST_F(NodeHealthTest, ManyReadingsAtOnceAreOneJudgement) {
  good(2);
  health.xid("GPU-a", 79);
  for (int i = 0; i < 10'000; ++i) health.read("GPU-a", GpuReading{});  // no time passes
  EXPECT_FALSE(offered(0));
}

TEST_F(NodeHealthTest, EveryChangeIsToldWithItsEvidence) {
  good(2);
  health.xid("GPU-a", 79);
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_EQ(changes[0].uuid, "GPU-a");
  EXPECT_EQ(changes[0].after, inventory::HealthState::kLost);
  EXPECT_NE(changes[0].why.find("XID 79"), std::string::npos) << changes[0].why;
  good(3600);
  ASSERT_FALSE(changes.empty());
  EXPECT_EQ(changes.back().after, inventory::HealthState::kHealthy);
  EXPECT_EQ(changes.back().why, "");
}

TEST_F(NodeHealthTest, AShorterQuietTimeBringsAKnownGpuBackSooner) {
  good(2);
  health.xid("GPU-a", 48);
  inventory::HealthOptions options;
  options.interval = kSecond;
  options.quiet = 3 * kSecond;
  health.set_options(options);
  good(10);
  EXPECT_TRUE(offered(0));
}

TEST_F(NodeHealthTest, AGpuThatStaysSilentIsNotOffered) {
  good(2);
  for (int i = 0; i < 5; ++i) {
    clock.advance(30 * kSecond);
    health.silent("GPU-a");
  }
  EXPECT_FALSE(offered(0));
}

}  // namespace
}  // namespace aliquot::node
