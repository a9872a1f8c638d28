#include "topology/collective.h"

#include <gtest/gtest.h>

#include "support/topologies.h"
#include "topology/shape.h"

namespace aliquot::topology {
namespace {

using model::LinkKind;

double rate_of(const Fabric& fabric, const Traffic& traffic) {
  return fair_rates(fabric.wires(), {traffic})[0];
}

TEST(RingAllReduce, TakesWhatTheFormulaSays) {
  // 4 GPUs: 2 x 3/4 x 1 GB over 25 GB/s.
  EXPECT_DOUBLE_EQ(ring_all_reduce_seconds(4, 1e9, 25'000), 0.06);
  // 2 GPUs: the bytes once; 8 GPUs: 1.75 times.
  EXPECT_DOUBLE_EQ(ring_all_reduce_seconds(2, 1e9, 50'000), 0.02);
  EXPECT_DOUBLE_EQ(ring_all_reduce_seconds(8, 8e9, 300'000), 14e9 / 300e9);
  // 14 steps of 1 us besides.
  EXPECT_DOUBLE_EQ(ring_all_reduce_seconds(8, 8e9, 300'000, 1000), 14e9 / 300e9 + 14e-6);
  EXPECT_EQ(ring_all_reduce_seconds(1, 1e9, 1), 0);
}

TEST(Fabric, GivesARingOfNvlinksItsSlowestHop) {
  const auto node = test::dgx1_v100();
  const Fabric fabric(node);
  const Shape shape = *Shape::of(node);
  for (const GpuSet set : {GpuSet{0, 3}, GpuSet{0, 1, 2, 3}, GpuSet::first(8)})
    EXPECT_DOUBLE_EQ(rate_of(fabric, fabric.ring(shape.best_ring(set))), shape.ring_mb_s(set));
  // 4 GPUs, 1 GB at 25 GB/s.
  EXPECT_DOUBLE_EQ(all_reduce_seconds(fabric, {0, 1, 2, 3}, 1e9), 0.06);
}

TEST(Fabric, GainsNothingByTheChoiceBehindAnNvswitch) {
  const Fabric fabric(test::hgx(12));
  EXPECT_DOUBLE_EQ(all_reduce_seconds(fabric, {0, 1, 2, 3}, 3e9),
                   all_reduce_seconds(fabric, {0, 2, 4, 6}, 3e9));
  // 1.5 x 3 GB at 300 GB/s.
  EXPECT_DOUBLE_EQ(all_reduce_seconds(fabric, {0, 1, 2, 3}, 3e9), 0.015);
}

TEST(Fabric, LetsTwoRingsBehindAnNvswitchRunAtFullSpeed) {
  const Fabric fabric(test::hgx(12));
  const auto rates = fair_rates(fabric.wires(), {fabric.ring({0, 1}), fabric.ring({2, 3})});
  EXPECT_EQ(rates, (std::vector<double>{300'000, 300'000}));
}

TEST(Fabric, SharesASwitchsPortUpwards) {
  const Fabric fabric(test::pcie_tree());
  // Under one switch: the port's 12 GB/s. Under one bridge in order: each wire once, 10 GB/s.
  EXPECT_DOUBLE_EQ(rate_of(fabric, fabric.ring({0, 1})), 12'000);
  EXPECT_DOUBLE_EQ(rate_of(fabric, fabric.ring({0, 1, 2, 3})), 10'000);
  // Back and forth between the switches: two hops share each port upwards.
  EXPECT_DOUBLE_EQ(rate_of(fabric, fabric.ring({0, 2, 1, 3})), 6'000);
}

TEST(Fabric, SharesTheLinkBetweenSockets) {
  const Fabric fabric(test::pcie_tree());
  EXPECT_DOUBLE_EQ(rate_of(fabric, fabric.ring({0, 1, 4, 5})), 6'000);
  const auto both = fair_rates(fabric.wires(), {fabric.ring({0, 4}), fabric.ring({2, 6})});
  EXPECT_DOUBLE_EQ(both[0], 3'000);
  EXPECT_DOUBLE_EQ(both[1], 3'000);
  // 4 GPUs, 1 GB: 1.5 GB at 6 GB/s alone, at 3 GB/s beside the other pair.
  EXPECT_DOUBLE_EQ(all_reduce_seconds(fabric, {0, 1, 4, 5}, 1e9), 0.25);
  EXPECT_DOUBLE_EQ(all_reduce_seconds(fabric, {0, 1, 4, 5}, 1e9, {fabric.ring({2, 6})}), 0.5);
}

TEST(Fabric, SharesASwitchWithADrive) {
  const auto node = with_device(test::pcie_tree(), "nvme0", 0, LinkKind::kPix);
  const Fabric fabric(node);
  const std::size_t drive = 8;
  EXPECT_EQ(node.nic_link(1, 0).kind, LinkKind::kPix);
  EXPECT_EQ(node.nic_link(2, 0).kind, LinkKind::kPhb);
  EXPECT_EQ(node.nic_link(4, 0).kind, LinkKind::kSys);
  // The ring 0-1-2-3 leaves the switch of 0 and 1 once, as the drive's reads into memory do.
  const auto rates =
      fair_rates(fabric.wires(), {fabric.ring({0, 1, 2, 3}), fabric.to_memory(drive)});
  EXPECT_DOUBLE_EQ(rates[0], 6'000);
  EXPECT_DOUBLE_EQ(rates[1], 6'000);
  // What comes from memory flows the other way and takes from the other direction.
  EXPECT_DOUBLE_EQ(rate_of(fabric, fabric.from_memory(drive)), 12'000);
  // Straight into GPU0, the switch's port is not used.
  const auto direct = fair_rates(fabric.wires(), {fabric.flow(drive, 0), fabric.ring({2, 3})});
  EXPECT_DOUBLE_EQ(direct[0], 12'000);
  EXPECT_DOUBLE_EQ(direct[1], 12'000);
}

TEST(Fabric, SharesARootPortOfCascadedSwitches) {
  // Two switches of two GPUs under one root port.
  const Fabric fabric(test::topology_of({"XPBB", "PXBB", "BBXP", "BBPX"}, 4));
  const auto rates = fair_rates(fabric.wires(), {fabric.to_memory(0), fabric.to_memory(2)});
  EXPECT_DOUBLE_EQ(rates[0], 6'000);
  EXPECT_DOUBLE_EQ(rates[1], 6'000);
  EXPECT_DOUBLE_EQ(rate_of(fabric, fabric.ring({0, 1, 2, 3})), 12'000);
}

TEST(FairRates, GiveTheRestToThoseWhoCanUseIt) {
  const std::vector<Wire> wires = {{"a", 12}, {"b", 4}};
  // Two on a, one of them bounded by b: 4, and the other gets 8.
  const auto rates = fair_rates(wires, {{{{0, 1}}}, {{{0, 1}, {1, 1}}}});
  EXPECT_DOUBLE_EQ(rates[0], 8);
  EXPECT_DOUBLE_EQ(rates[1], 4);
}

TEST(FairRates, CountWhatGoesTwiceOverAWire) {
  const auto rates = fair_rates({{"a", 12}}, {{{{0, 2}}}, {{{0, 1}}, 3}});
  EXPECT_DOUBLE_EQ(rates[1], 3);
  EXPECT_DOUBLE_EQ(rates[0], 4.5);
}

}  // namespace
}  // namespace aliquot::topology
