#include "scheduler/gang_nodes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/gang.h"
#include "scheduler/test_cluster.h"
#include "support/topologies.h"

namespace aliquot::scheduler {
namespace {

using test::node_in;
using test::whole;

// `nodes` nodes of one shape on one leaf, under policy topology.
Scheduler machines(const model::NodeTopology& shape, int nodes, int max_pods = 110) {
  PolicyInput input;
  input.topologies["shape"] = shape;
  std::vector<model::NodeSpec> specs;
  for (int i = 0; i < nodes; ++i) {
    specs.push_back(
        node_in("n" + std::to_string(i), static_cast<int>(shape.gpu_count()), {"leaf"}));
    specs.back().topology = "shape";
    specs.back().max_pods = max_pods;
  }
  return {std::move(specs), std::move(*make_policy("topology", input))};
}

// Somebody else takes these GPUs.
void occupy(Scheduler& s, int node, const std::vector<int>& gpus) {
  model::Placement placement;
  placement.node = node;
  const NodeShape& shape = s.snapshot().shape(s.snapshot().shape_id(static_cast<NodeId>(node)));
  for (const int gpu : gpus)
    placement.gpus.push_back({gpu, 0, shape.memory_capacity(), shape.cores_capacity(), true, 0});
  ASSERT_TRUE(s.snapshot().reserve(placement));
}

using Spots = std::map<int, std::set<int>>;  // GPUs by node

Spots place(Scheduler& s, int pods, int gpus) {
  const DomainTree tree = domain_tree_of(s.snapshot());
  const GangDecision d = *place_gang(s, tree, {"g", {{whole(gpus), pods}}, {}, {}});
  EXPECT_EQ(d.outcome, Outcome::kPlaced);
  Spots spots;
  for (const Decision& member : d.members) {
    // What was decided is what is reserved.
    EXPECT_EQ(s.snapshot().find(member.reservation)->placement, member.placement);
    for (const model::GpuPart& part : member.placement.gpus)
      EXPECT_TRUE(spots[member.placement.node].insert(part.gpu).second);
  }
  return spots;
}

TEST(GangNodes, ALoneNodeIsUsedLikeByOneRequest) {
  Scheduler s = machines(aliquot::test::dgx1_v100(), 2);
  // The best four of the machine, and not four that were each best to lose.
  EXPECT_EQ(place(s, 4, 1), (Spots{{0, {0, 1, 2, 3}}}));
}

TEST(GangNodes, PodsOnANodeGetNeighboursInItsRing) {
  Scheduler s = machines(aliquot::test::four_ring(), 1);
  const DomainTree tree = domain_tree_of(s.snapshot());
  const GangDecision d = *place_gang(s, tree, {"g", {{whole(2), 2}}, {}, {}});
  ASSERT_EQ(d.outcome, Outcome::kPlaced);
  for (const Decision& member : d.members)  // the ring is 0-1-3-2; 0-3 and 1-2 are weak
    EXPECT_NE(member.placement.gpus[0].gpu + member.placement.gpus[1].gpu, 3);
}

TEST(GangNodes, FewAreTouched) {
  Scheduler s = machines(aliquot::test::railed(8), 4);
  occupy(s, 0, {0, 1, 2, 3, 4, 5});  // fuller, but too small to help
  const Spots spots = place(s, 12, 1);
  EXPECT_EQ(spots.size(), 2u);
  EXPECT_FALSE(spots.contains(0));
}

TEST(GangNodes, AllNicsCarryTheGang) {
  Scheduler s = machines(aliquot::test::two_nics(), 2);
  occupy(s, 0, {2, 3, 6});
  occupy(s, 1, {2, 3, 6});
  // Five are free on each. Four of them reach both NICs; the nearest ones do so fastest.
  EXPECT_EQ(place(s, 2, 4), (Spots{{0, {0, 1, 4, 5}}, {1, {0, 1, 4, 5}}}));
}

TEST(GangNodes, ANodeWithBothNicsIsPreferredToAFullerOne) {
  Scheduler s = machines(aliquot::test::two_nics(), 3);
  occupy(s, 0, {0, 1, 2, 3, 7});
  occupy(s, 1, {2, 3, 6, 7});
  occupy(s, 2, {2, 3, 6, 7});
  EXPECT_EQ(place(s, 2, 3), (Spots{{1, {0, 1, 4}}, {2, {0, 1, 4}}}));
}

TEST(GangNodes, TheRailsOfAllNodesAreTheSame) {
  Scheduler s = machines(aliquot::test::railed(8), 3, 2);  // one pod slot is left on each
  occupy(s, 0, {0, 3, 4, 6, 7});                           // 1, 2 and 5 are free
  occupy(s, 1, {2, 3, 4, 6, 7});                           // 0, 1 and 5
  occupy(s, 2, {0, 1, 2, 4, 6, 7});                        // 3 and 5
  EXPECT_EQ(place(s, 3, 1), (Spots{{0, {5}}, {1, {5}}, {2, {5}}}));
}

TEST(GangNodes, RailsThatOthersUseAreLeftAlone) {
  Scheduler s = machines(aliquot::test::two_nics(), 2, 2);  // one pod slot is left on each
  for (const int node : {0, 1}) occupy(s, node, {0, 2, 3});
  // 1 is as near to its NIC as 4, but three others go by it.
  EXPECT_EQ(place(s, 2, 1), (Spots{{0, {4}}, {1, {4}}}));
}

TEST(GangNodes, PodSlotsThatAreLackingMoveItOn) {
  Scheduler s = machines(aliquot::test::railed(8), 2, 1);
  EXPECT_EQ(place(s, 2, 1).size(), 2u);
}

TEST(GangNodes, ARequiredLevelKeepsOutNodesBesideIt) {
  PolicyInput input;
  std::vector<model::NodeSpec> nodes{node_in("loose", 4, {}), node_in("a", 2, {"leaf"}),
                                     node_in("b", 2, {"leaf"})};
  Scheduler s(std::move(nodes), std::move(*make_policy("topology", input)));
  const DomainTree tree = domain_tree_of(s.snapshot());
  Gang gang{"g", {{whole(2), 2}}, 1, {}};
  const GangDecision d = *place_gang(s, tree, gang);
  ASSERT_EQ(d.outcome, Outcome::kPlaced);
  for (const Decision& member : d.members) EXPECT_NE(member.placement.node, 0);
  EXPECT_EQ(tree.domains()[d.domain].path, "leaf");
}

TEST(GangNodes, MembersOfSeveralKindsAndWithoutGpusComeAlong) {
  Scheduler s = machines(aliquot::test::railed(8), 2);
  const DomainTree tree = domain_tree_of(s.snapshot());
  model::Request launcher;
  launcher.containers = {{"main", 1'000, test::kGiB, {}}};
  const Gang gang{"g", {{launcher, 1}, {whole(4), 2}, {whole(1), 3}}, {}, {}};
  const GangDecision d = *place_gang(s, tree, gang);
  ASSERT_EQ(d.outcome, Outcome::kPlaced);
  ASSERT_EQ(d.members.size(), 6u);
  EXPECT_TRUE(d.members[0].placement.gpus.empty());
  EXPECT_EQ(d.members[1].placement.gpus.size(), 4u);
  EXPECT_EQ(d.members[5].placement.gpus.size(), 1u);
}

TEST(GangNodes, ARefusedGangLeavesNoTrace) {
  Scheduler s = machines(aliquot::test::railed(8), 2);
  occupy(s, 0, {0});
  const DomainTree tree = domain_tree_of(s.snapshot());
  const std::uint64_t before = s.snapshot().digest();
  const GangDecision d = *place_gang(s, tree, {"g", {{whole(4), 4}}, {}, {}});
  EXPECT_EQ(d.outcome, Outcome::kNotNow);
  EXPECT_EQ(s.snapshot().digest(), before);
}

}  // namespace
}  // namespace aliquot::scheduler
