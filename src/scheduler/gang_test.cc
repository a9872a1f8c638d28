#include "scheduler/gang.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "scheduler/test_cluster.h"

namespace aliquot::scheduler {
namespace {

using test::node_in;
using test::scheduler_of;
using test::whole;

Gang gang_of(int count, int gpus) { return {"g", {{whole(gpus), count}}, {}, {}}; }

std::set<int> nodes_of(const GangDecision& decision) {
  std::set<int> nodes;
  for (const Decision& member : decision.members) nodes.insert(member.placement.node);
  return nodes;
}

// Two racks of two nodes of two GPUs, under one spine.
std::vector<model::NodeSpec> racks() {
  return {node_in("a0", 2, {"s", "a"}), node_in("a1", 2, {"s", "a"}), node_in("b0", 2, {"s", "b"}),
          node_in("b1", 2, {"s", "b"})};
}

TEST(Gang, StartsAllTogether) {
  Scheduler s = scheduler_of(racks());
  const DomainTree tree = domain_tree_of(s.snapshot());
  const GangDecision d = *place_gang(s, tree, gang_of(4, 2));
  EXPECT_EQ(d.outcome, Outcome::kPlaced);
  EXPECT_EQ(nodes_of(d), (std::set<int>{0, 1, 2, 3}));
}

TEST(Gang, LeavesNoTraceWhenRefused) {
  Scheduler s = scheduler_of(racks());
  ASSERT_EQ(s.place(whole(1))->outcome, Outcome::kPlaced);
  const DomainTree tree = domain_tree_of(s.snapshot());
  const std::uint64_t before = s.snapshot().digest();
  const GangDecision d = *place_gang(s, tree, gang_of(4, 2));
  EXPECT_EQ(d.outcome, Outcome::kNotNow);
  EXPECT_TRUE(d.members.empty());
  EXPECT_EQ(s.snapshot().digest(), before);
}

TEST(Gang, StaysInOneDomainOfTheLevelRequired) {
  Scheduler s = scheduler_of(racks());
  ASSERT_EQ(s.place(whole(2))->placement.node, 0);
  const DomainTree tree = domain_tree_of(s.snapshot());
  Gang gang = gang_of(2, 2);
  gang.required_level = 2;
  const GangDecision d = *place_gang(s, tree, gang);
  ASSERT_EQ(d.outcome, Outcome::kPlaced);
  EXPECT_EQ(nodes_of(d), (std::set<int>{2, 3}));
  EXPECT_EQ(tree.domains()[d.domain].path, "s/b");
  EXPECT_EQ(place_gang(s, tree, gang)->outcome, Outcome::kNotNow);
}

TEST(Gang, WidensFromTheLevelPreferred) {
  Scheduler s = scheduler_of(racks());
  ASSERT_EQ(s.place(whole(2))->placement.node, 0);
  const DomainTree tree = domain_tree_of(s.snapshot());
  Gang gang = gang_of(3, 2);
  gang.preferred_level = 2;
  const GangDecision d = *place_gang(s, tree, gang);
  ASSERT_EQ(d.outcome, Outcome::kPlaced);
  EXPECT_EQ(tree.domains()[d.domain].path, "s");
}

TEST(Gang, TakesTheFullestDomainThatHoldsIt) {
  Scheduler s = scheduler_of(racks());
  const std::vector<NodeId> b0{2};
  (void)s.place(*s.classify(whole(1)), b0);
  const DomainTree tree = domain_tree_of(s.snapshot());
  Gang gang = gang_of(1, 2);
  gang.preferred_level = 2;
  EXPECT_EQ(nodes_of(*place_gang(s, tree, gang)), (std::set<int>{3}));
}

TEST(Gang, TouchesFewSubDomains) {
  Scheduler s = scheduler_of(racks());
  const std::vector<NodeId> a0{0};
  (void)s.place(*s.classify(whole(1)), a0);
  const DomainTree tree = domain_tree_of(s.snapshot());
  Gang gang = gang_of(4, 1);
  gang.required_level = 1;
  gang.preferred_level = 1;
  EXPECT_EQ(nodes_of(*place_gang(s, tree, gang)), (std::set<int>{2, 3}));
}

TEST(Gang, SaysNeverWhenNoDomainIsLargeEnough) {
  Scheduler s = scheduler_of(racks());
  const DomainTree tree = domain_tree_of(s.snapshot());
  Gang gang = gang_of(3, 2);
  gang.required_level = 2;
  const GangDecision d = *place_gang(s, tree, gang);
  EXPECT_EQ(d.outcome, Outcome::kNever);
  EXPECT_THAT(d.why, testing::HasSubstr("no domain of level 2"));
}

TEST(Gang, TwoGangsCannotHoldHalfOfEachOther) {
  Scheduler s = scheduler_of(racks());
  const DomainTree tree = domain_tree_of(s.snapshot());
  EXPECT_EQ(place_gang(s, tree, gang_of(3, 2))->outcome, Outcome::kPlaced);
  EXPECT_EQ(place_gang(s, tree, gang_of(3, 2))->outcome, Outcome::kNotNow);
  // What the second did not take is there for others.
  EXPECT_EQ(s.place(whole(2))->outcome, Outcome::kPlaced);
}

TEST(Gang, RefusesALevelThatTheTreeDoesNotHave) {
  Scheduler s = scheduler_of(racks());
  const DomainTree tree = domain_tree_of(s.snapshot());
  Gang gang = gang_of(1, 1);
  gang.required_level = 3;
  EXPECT_FALSE(place_gang(s, tree, gang));
}

TEST(Domains, WithEqualNamesUnderDifferentParentsDiffer) {
  Scheduler s = scheduler_of({node_in("a", 1, {"x", "rack"}), node_in("b", 1, {"y", "rack"})});
  const DomainTree tree = domain_tree_of(s.snapshot());
  EXPECT_EQ(tree.at_level(2).size(), 2u);
}

}  // namespace
}  // namespace aliquot::scheduler
