#include "model/topology.h"

#include <gtest/gtest.h>

#include "model/gpu_set.h"

namespace aliquot::model {
namespace {

NodeTopology all_joined(unsigned count, const Link& link) {
  NodeTopology node(std::vector<Device>(count), {});
  for (unsigned a = 0; a < count; ++a)
    for (unsigned b = 0; b < a; ++b) node.set_link(a, b, link);
  return node;
}

TEST(Link, HasTheNominalBandwidthOfItsKind) {
  EXPECT_EQ(nvlink(2, 2).bandwidth_mb_s, 50'000u);
  EXPECT_EQ(nvlink(4, 1).bandwidth_mb_s, 80'000u);
  EXPECT_EQ(nvlink(18, 5).bandwidth_mb_s, 900'000u);
  EXPECT_EQ(nvlink(12).bandwidth_mb_s, 300'000u);
  EXPECT_EQ(path_link(LinkKind::kPhb).bandwidth_mb_s, 10'000u);
  EXPECT_EQ(path_link(LinkKind::kPix, 5).bandwidth_mb_s, 48'000u);
}

TEST(Link, GetsNoFasterWithDistance) {
  const LinkKind kinds[] = {LinkKind::kPix, LinkKind::kPxb, LinkKind::kPhb, LinkKind::kNode,
                            LinkKind::kSys};
  for (const unsigned generation : {0u, 3u, 4u, 5u, 6u})
    for (std::size_t i = 1; i < std::size(kinds); ++i) {
      const Link near = path_link(kinds[i - 1], generation);
      const Link far = path_link(kinds[i], generation);
      EXPECT_GE(near.bandwidth_mb_s, far.bandwidth_mb_s);
      EXPECT_LT(near.latency_ns, far.latency_ns);
    }
}

TEST(Link, PrintsAsTheToolDoes) {
  EXPECT_EQ(link_text(nvlink(12)), "NV12");
  EXPECT_EQ(link_text(nvlink(18, 4, LinkKind::kNvswitch)), "NV18");
  EXPECT_EQ(link_text(path_link(LinkKind::kNode)), "NODE");
  EXPECT_EQ(link_text(weight_link(12'500)), "12.5");
  EXPECT_EQ(link_text(weight_link(300'000)), "300");
  EXPECT_EQ(link_text(weight_link(7)), "0.007");
  EXPECT_EQ(link_text(Link{}), "X");
}

TEST(NodeTopology, KeepsALinkTheSameBothWays) {
  NodeTopology node(std::vector<Device>(2), std::vector<Device>(1));
  node.set_link(0, 1, nvlink(4));
  node.set_link(1, 2, path_link(LinkKind::kPxb));
  EXPECT_EQ(node.link(1, 0), nvlink(4));
  EXPECT_EQ(node.nic_link(1, 0), path_link(LinkKind::kPxb));
}

TEST(NodeTopology, CallsTwoUnknownNumaNodesDifferent) {
  NodeTopology node(std::vector<Device>(3), {});
  EXPECT_FALSE(node.same_numa(0, 1));
  node.gpu(0).numa = 0;
  node.gpu(1).numa = 0;
  node.gpu(2).numa = 1;
  EXPECT_TRUE(node.same_numa(0, 1));
  EXPECT_FALSE(node.same_numa(1, 2));
}

TEST(NodeTopology, SeesASwitchWhereNoChipHasSoManyNvlinks) {
  NodeTopology switched = all_joined(8, nvlink(12));
  mark_nvswitch(switched);
  EXPECT_EQ(switched.link(0, 7).kind, LinkKind::kNvswitch);
  EXPECT_EQ(switched.link(0, 7).bandwidth_mb_s, 300'000u);

  NodeTopology direct = all_joined(4, nvlink(4));
  mark_nvswitch(direct);
  EXPECT_EQ(direct.link(0, 3).kind, LinkKind::kNvlink);
}

TEST(GpuSet, PrintsRangesAndPairs) {
  EXPECT_EQ(gpu_set_text({0, 1, 2, 3, 6}), "0-3,6");
  EXPECT_EQ(gpu_set_text({4, 5}), "4,5");
  EXPECT_EQ(gpu_set_text({}), "none");
  EXPECT_EQ(gpu_set_text(GpuSet::first(32)), "0-31");
}

TEST(GpuSet, ReadsWhatItPrints) {
  for (const GpuSet set : {GpuSet{}, GpuSet{0}, GpuSet{0, 1}, GpuSet{1, 2, 3, 31}}) {
    const auto again = parse_gpu_set(gpu_set_text(set));
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(*again, set);
  }
  for (const char* bad : {"a", "1,", ",1", "3-1", "1-", "-1", "1,1", "0-2,2", "32", "0-99", " 1"})
    EXPECT_FALSE(parse_gpu_set(bad)) << bad;
}

TEST(GpuSet, IteratesInAscendingOrder) {
  std::vector<unsigned> seen;
  for (const unsigned gpu : GpuSet{9, 1, 31}) seen.push_back(gpu);
  EXPECT_EQ(seen, (std::vector<unsigned>{1, 9, 31}));
  EXPECT_EQ((GpuSet{1, 2} - GpuSet{2}), GpuSet{1});
  EXPECT_TRUE((GpuSet{1, 2}).contains(GpuSet{2}));
  EXPECT_FALSE((GpuSet{1, 2}).contains(GpuSet{2, 3}));
}

}  // namespace
}  // namespace aliquot::model
