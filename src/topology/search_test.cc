#include "topology/search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "support/topologies.h"
#include "topology/best_table.h"

namespace aliquot::topology {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

Shape shape_of(const model::NodeTopology& node) { return *Shape::of(node); }

GpuSet pick(const Shape& shape, GpuSet free, unsigned count, GpuSet include = {}) {
  const auto set = best_set(shape, {.count = count, .free = free, .include = include});
  return set ? *set : GpuSet{};
}

// Takes `count` GPUs again and again until none fit.
std::vector<GpuSet> in_a_row(const Shape& shape, unsigned count) {
  std::vector<GpuSet> taken;
  GpuSet free = shape.all();
  while (free.size() >= count) {
    taken.push_back(pick(shape, free, count));
    free = free - taken.back();
  }
  return taken;
}

using Sets = std::vector<GpuSet>;

TEST(BestSet, OfADgx1WithV100sAreItsDoubleLinkedPairsInQuads) {
  const Shape shape = shape_of(test::dgx1_v100());
  EXPECT_EQ(in_a_row(shape, 2), (Sets{{0, 3}, {1, 2}, {4, 7}, {5, 6}}));
  EXPECT_EQ(in_a_row(shape, 4), (Sets{{0, 1, 2, 3}, {4, 5, 6, 7}}));
  EXPECT_EQ(in_a_row(shape, 8), (Sets{GpuSet::first(8)}));
}

TEST(BestSet, TakesTheDoubleLinkAmongFewFreeGpus) {
  const Shape shape = shape_of(test::dgx1_v100());
  EXPECT_EQ(pick(shape, {0, 2, 4, 5}, 2), (GpuSet{0, 4}));
  // {5,6} has two links as well; the better pair, in one NUMA node, is left to others or asked for.
  EXPECT_EQ(pick(shape, {0, 4, 5, 6}, 2), (GpuSet{0, 4}));
  EXPECT_EQ(*best_set(shape, {.count = 2, .free = {0, 4, 5, 6}, .near_numa = true}),
            (GpuSet{5, 6}));
  EXPECT_EQ(pick(shape, {0, 1, 3}, 2), (GpuSet{0, 3}));
  EXPECT_EQ(pick(shape, {0, 1, 4}, 2), (GpuSet{0, 4}));
}

TEST(BestSet, HoldsWhatMustBeIncluded) {
  const Shape shape = shape_of(test::dgx1_v100());
  const GpuSet all = shape.all();
  EXPECT_EQ(pick(shape, all, 2, {4}), (GpuSet{4, 7}));
  EXPECT_EQ(pick(shape, all, 4, {4}), (GpuSet{4, 5, 6, 7}));
  EXPECT_EQ(pick(shape, all, 4, {0, 2, 4, 6}), (GpuSet{0, 2, 4, 6}));
}

TEST(BestSet, OfFiveGpusPrefersARingToMoreLinksWithoutOne) {
  const Shape shape = shape_of(test::dgx1_v100());
  const GpuSet five = pick(shape, shape.all(), 5);
  const Sets right = {{0, 2, 3, 4, 7}, {0, 3, 4, 6, 7}, {1, 2, 3, 5, 6}, {1, 2, 5, 6, 7}};
  EXPECT_NE(std::find(right.begin(), right.end(), five), right.end()) << gpu_set_text(five);
  EXPECT_EQ(shape.ring_mb_s(five), 25'000u);
  // 10 NVLinks in 6 of 10 pairs.
  EXPECT_EQ(shape.pairs_mb_s(five), 10 * 25'000u + 4 * 6'000u);
}

TEST(BestSet, ServesOddSizes) {
  const Shape shape = shape_of(test::dgx1_v100());
  for (const unsigned count : {3u, 5u, 6u, 7u})
    EXPECT_EQ(pick(shape, shape.all(), count).size(), count);
  const GpuSet three = pick(shape, shape.all(), 3);
  const Sets right = {{0, 2, 3}, {1, 2, 3}, {4, 6, 7}, {5, 6, 7}};
  EXPECT_NE(std::find(right.begin(), right.end(), three), right.end()) << gpu_set_text(three);
  EXPECT_EQ(shape.ring_mb_s(three), 25'000u);
}

// The NVLinks inside the best sets by sum alone, as enumerated on this machine's matrix.
TEST(Shape, SumsTheDgx1sNvlinksAsEnumerated) {
  const Shape shape = shape_of(test::dgx1_v100());
  const unsigned links[] = {0, 0, 2, 5, 9, 11, 14, 18, 24};
  const unsigned sets[] = {0, 0, 8, 4, 2, 4, 8, 8, 1};
  for (unsigned count = 2; count <= 8; ++count) {
    unsigned most = 0;
    unsigned found = 0;
    for (std::uint32_t bits = 0; bits < 256; ++bits) {
      const GpuSet set = GpuSet::from_bits(bits);
      if (set.size() != count) continue;
      unsigned sum = 0;
      for (const unsigned a : set)
        for (const unsigned b : set)
          if (a < b && shape.pair(a, b).linked) sum += shape.pair(a, b).mb_s / 25'000;
      if (sum > most) found = 0;
      most = std::max(most, sum);
      if (sum == most) ++found;
    }
    EXPECT_EQ(most, links[count]) << count;
    EXPECT_EQ(found, sets[count]) << count;
  }
}

TEST(Shape, FindsDoubleLinkedRingsOnlyForTwoAndEightOfADgx1) {
  const Shape shape = shape_of(test::dgx1_v100());
  for (unsigned count = 2; count <= 8; ++count) {
    std::uint32_t widest = 0;
    for (std::uint32_t bits = 0; bits < 256; ++bits)
      if (GpuSet::from_bits(bits).size() == count)
        widest = std::max(widest, shape.ring_mb_s(GpuSet::from_bits(bits)));
    EXPECT_EQ(widest == 50'000u, count == 2 || count == 8) << count;
  }
}

TEST(BestSet, OfADgx1WithP100sLeavesQuadsWhole) {
  const Shape shape = shape_of(test::dgx1_p100());
  EXPECT_EQ(in_a_row(shape, 4), (Sets{{0, 1, 2, 3}, {4, 5, 6, 7}}));
  for (const GpuSet pair : in_a_row(shape, 2)) EXPECT_EQ(shape.ring_mb_s(pair), 25'000u);
}

TEST(BestSet, OfTheFourRingFollowsItsStrongEdges) {
  const Shape shape = shape_of(test::four_ring());
  EXPECT_EQ(shape.ring_mb_s(GpuSet::first(4)), 300'000u);
  EXPECT_EQ(shape.best_ring(GpuSet::first(4)), (std::vector<unsigned>{0, 1, 3, 2}));
  // Counting each edge in both directions, as the matrix does: 2 x (4 x 300 + 2 x 50).
  EXPECT_EQ(2 * shape.pairs_mb_s(GpuSet::first(4)), 2 * 1'300'000u);
  EXPECT_EQ(in_a_row(shape, 2), (Sets{{0, 1}, {2, 3}}));
  for (const GpuSet three : Sets{{0, 1, 2}, {0, 1, 3}, {0, 2, 3}, {1, 2, 3}})
    EXPECT_EQ(shape.ring_mb_s(three), 50'000u);  // no triangle of 300s
  EXPECT_TRUE(shape.is_clique({0, 2}));
  EXPECT_FALSE(shape.is_clique({0, 1, 2}));
}

TEST(BestSet, GivesAOneGpuJobTheGpuWhoseLossHarmsLeast) {
  EXPECT_EQ(pick(shape_of(test::one_bridge()), GpuSet::first(3), 1), GpuSet{2});
  EXPECT_EQ(pick(shape_of(test::one_bridge()), GpuSet::first(3), 2), (GpuSet{0, 1}));
  // 0 is gone: 1 is alone under its switch, and its quad is broken already.
  EXPECT_EQ(pick(shape_of(test::pcie_tree()), {1, 2, 3, 4, 5, 6, 7}, 1), GpuSet{1});
}

TEST(BestSet, SpreadsNoOneGpuJobsOverTheSocketsOfAnHgx) {
  EXPECT_EQ(in_a_row(shape_of(test::hgx(18)), 1), (Sets{{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}}));
  EXPECT_EQ(pick(shape_of(test::hgx(18)), {0, 1, 2, 3, 4, 6, 7}, 1), GpuSet{4});
}

TEST(BestSet, KeepsTheQuadForTheFourGpuJob) {
  // Taking 4 breaks one double link, taking 1 breaks the only quad's.
  EXPECT_EQ(pick(shape_of(test::dgx1_v100()), {0, 1, 2, 3, 4}, 1), GpuSet{4});
}

TEST(BestSet, TakesPairsUnderOneSwitchAndQuadsUnderOneBridge) {
  const Shape shape = shape_of(test::pcie_tree());
  EXPECT_EQ(in_a_row(shape, 2), (Sets{{0, 1}, {2, 3}, {4, 5}, {6, 7}}));
  EXPECT_EQ(in_a_row(shape, 4), (Sets{{0, 1, 2, 3}, {4, 5, 6, 7}}));
  EXPECT_EQ(pick(shape, {0, 2, 3, 4}, 2), (GpuSet{2, 3}));
}

TEST(BestSet, TellsSocketsApartWhereAllPathsPrintSys) {
  const Shape shape = shape_of(test::topology_of(std::vector<std::string>(8, "SSSSSSSS"), 4));
  EXPECT_EQ(pick(shape, shape.all(), 4), (GpuSet{0, 1, 2, 3}));
  EXPECT_EQ(pick(shape, {0, 4, 5}, 2), (GpuSet{4, 5}));
}

TEST(BestSet, LetsLatencyBreakTies) {
  model::NodeTopology node(std::vector<model::Device>(3), {});
  node.set_link(0, 1, model::weight_link(10'000, 900));
  node.set_link(0, 2, model::weight_link(10'000, 900));
  node.set_link(1, 2, model::weight_link(10'000, 500));
  EXPECT_EQ(pick(shape_of(node), GpuSet::first(3), 2), (GpuSet{1, 2}));
}

TEST(BestSet, KeepsWhatIsExcludedForOthers) {
  const Shape shape = shape_of(test::dgx1_v100());
  const auto set = best_set(shape, {.count = 2, .free = shape.all(), .exclude = {0, 3}});
  ASSERT_TRUE(set);
  EXPECT_EQ(*set, (GpuSet{1, 2}));
}

TEST(BestSet, StaysInOneNumaNodeWhereItMust) {
  const Shape shape = shape_of(test::dgx1_v100());
  Request request{.count = 2, .free = {0, 4, 5}, .one_numa_node = true};
  EXPECT_EQ(*best_set(shape, request), (GpuSet{4, 5}));
  request.one_numa_node = false;
  EXPECT_EQ(*best_set(shape, request), (GpuSet{0, 4}));
}

TEST(BestSet, IsAnNvlinkCliqueOrNothing) {
  const Shape shape = shape_of(test::dgx1_v100());
  Request request{.count = 3, .free = {0, 1, 4, 5}, .one_clique = true};
  const auto refused = best_set(shape, request);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::kExhausted);
  EXPECT_EQ(refused.error().message,
            "free are 0,1,4,5, but among them no 3 GPUs joined pairwise by NVLink");
  request.free = {0, 1, 2, 5};
  EXPECT_EQ(*best_set(shape, request), (GpuSet{0, 1, 2}));
  request = {.count = 5, .free = shape.all(), .one_clique = true};
  EXPECT_EQ(best_set(shape, request).error().code, Errc::kInvalid);
}

TEST(BestSet, GoesToTheNearNicsWhereAsked) {
  model::NodeTopology node(std::vector<model::Device>(3), std::vector<model::Device>(1));
  for (std::size_t a = 0; a < 3; ++a)
    for (std::size_t b = 0; b < a; ++b) node.set_link(a, b, model::nvlink(12));
  node.set_link(0, 3, model::path_link(model::LinkKind::kSys));
  node.set_link(1, 3, model::path_link(model::LinkKind::kPix));
  node.set_link(2, 3, model::path_link(model::LinkKind::kPxb));
  const Shape shape = shape_of(node);
  EXPECT_EQ(*best_set(shape, {.count = 2, .free = shape.all(), .near_nics = true}), (GpuSet{1, 2}));
  EXPECT_EQ(*best_set(shape, {.count = 1, .free = shape.all(), .near_nics = true}), GpuSet{1});
  EXPECT_EQ(*best_set(shape, {.count = 2, .free = shape.all()}), (GpuSet{0, 1}));
}

TEST(BestSet, TellsNotNowFromNever) {
  const Shape shape = shape_of(test::dgx1_v100());
  const auto error = [&](const Request& request) { return best_set(shape, request).error(); };
  EXPECT_EQ(error({.count = 3, .free = {1, 6}}),
            (Error{Errc::kExhausted, "3 GPUs asked, free are 2 (1,6)"}));
  EXPECT_EQ(error({.count = 9, .free = shape.all()}),
            (Error{Errc::kInvalid, "9 GPUs asked, this node has 8"}));
  EXPECT_EQ(error({.count = 0, .free = shape.all()}).code, Errc::kInvalid);
  EXPECT_EQ(error({.count = 1, .free = shape.all(), .include = {1, 2}}),
            (Error{Errc::kInvalid, "1 GPU asked, but 2 must be included"}));
  EXPECT_EQ(error({.count = 2, .free = {0, 1}, .include = {5}}),
            (Error{Errc::kExhausted, "GPU 5 is not free"}));
  EXPECT_EQ(error({.count = 2, .free = shape.all(), .include = {5}, .exclude = {5}}).code,
            Errc::kInvalid);
  EXPECT_EQ(error({.count = 1, .free = {11}}),
            (Error{Errc::kInvalid, "GPU 11 named, this node has 8 GPUs"}));
}

TEST(Shape, RefusesMoreGpusThanItCanSearchExactly) {
  const model::NodeTopology node(std::vector<model::Device>(17), {});
  EXPECT_THAT(Shape::of(node).error().message, HasSubstr("17 GPUs"));
  EXPECT_FALSE(Shape::of(model::NodeTopology{}));
}

TEST(ShapeTables, AreSharedByNodesOfEqualShapeOnly) {
  ShapeTables tables;
  model::NodeTopology renamed = test::dgx1_v100();
  renamed.gpu(0).name = "other";
  for (std::size_t i = 0; i < 8; ++i) renamed.gpu(i).numa = 7 - *renamed.gpus()[i].numa;
  const auto one = tables.table_for(test::dgx1_v100());
  const auto two = tables.table_for(renamed);
  ASSERT_TRUE(one && two);
  EXPECT_EQ(*one, *two);
  EXPECT_EQ(tables.size(), 1u);
  ASSERT_TRUE(tables.table_for(test::dgx1_p100()));
  EXPECT_EQ(tables.size(), 2u);
}

TEST(BestTable, HasNothingWhereTooFewAreFree) {
  const BestTable table(shape_of(test::one_bridge()));
  EXPECT_THAT(table.best(GpuSet{0, 1}, 3), IsEmpty());
  EXPECT_THAT(table.best(GpuSet{0, 1}, 0), IsEmpty());
  EXPECT_EQ(table.best({.count = 3, .free = {0, 1}}).error().code, Errc::kExhausted);
}

}  // namespace
}  // namespace aliquot::topology
