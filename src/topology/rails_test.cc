#include "topology/rails.h"

#include <gtest/gtest.h>

#include "support/topologies.h"

namespace aliquot::topology {
namespace {

using model::GpuSet;

// Rate of each rail, nobody else on the wires.
double rail_mb_s(const model::NodeTopology& node, GpuSet gpus) {
  const Fabric fabric(node);
  return fair_rates(fabric.wires(), {Rails(node).traffic(fabric, gpus)})[0];
}

TEST(Rails, LeadByTheNearestNic) {
  const Rails rails(test::railed(4));
  EXPECT_EQ(rails.of({2}), 0b0100u);
  EXPECT_EQ(rails.of({0, 3}), 0b1001u);
  EXPECT_EQ(rails.behind(0b0110), (GpuSet{1, 2}));
}

TEST(Rails, AreSharedByTheGpusBehindOneNic) {
  const Rails rails(test::two_nics());
  EXPECT_EQ(rails.of({0, 1, 2, 3}), 0b01u);
  EXPECT_EQ(rails.of({3, 4}), 0b11u);
  EXPECT_EQ(rails.behind(0b10), (GpuSet{4, 5, 6, 7}));
}

TEST(Rails, AreNoneWithoutNics) {
  const Rails rails(test::dgx1_v100());
  EXPECT_EQ(rails.of(GpuSet::first(8)), 0u);
  EXPECT_TRUE(rails.traffic(Fabric(test::dgx1_v100()), {0, 1}).uses.empty());
}

TEST(Rails, GoAsFastAsTheNearestGpuReachesTheNic) {
  // Generation 3: 12 GB/s below one root port, 10 through the CPU.
  EXPECT_DOUBLE_EQ(rail_mb_s(test::two_nics(), {0}), 12'000);
  EXPECT_DOUBLE_EQ(rail_mb_s(test::two_nics(), {3}), 10'000);
  EXPECT_DOUBLE_EQ(rail_mb_s(test::two_nics(), {0, 3}), 12'000);
  EXPECT_DOUBLE_EQ(rail_mb_s(test::two_nics(), {0, 4}), 12'000);
}

TEST(RailsWorth, IsHalfOffTheRailOrTheLeaf) {
  EXPECT_DOUBLE_EQ(rails_worth(0b01, 0b01, true), 1);
  EXPECT_DOUBLE_EQ(rails_worth(0b01, 0b10, true), 0.5);
  EXPECT_DOUBLE_EQ(rails_worth(0b11, 0b11, false), 1);
  EXPECT_DOUBLE_EQ(rails_worth(0b011, 0b110, true), 1.5);
  EXPECT_DOUBLE_EQ(rails_worth(0b111, 0b001, true), 1);
  EXPECT_DOUBLE_EQ(rails_worth(0, 0b001, true), 0);
}

}  // namespace
}  // namespace aliquot::topology
