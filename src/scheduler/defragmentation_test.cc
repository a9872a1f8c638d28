#include "scheduler/defragmentation.h"

#include <gtest/gtest.h>

#include "scheduler/test_cluster.h"

namespace aliquot::scheduler {
namespace {

using test::node;
using test::scheduler_of;
using test::whole;

// Places `request` on exactly this node and makes it movable.
Movable put(Scheduler& s, NodeId on, const model::Request& request, std::string budget = {}) {
  const ClassId id = *s.classify(request);
  const std::vector<NodeId> where{on};
  return {s.place(id, where).reservation, id, std::move(budget), 10};
}

TEST(Defragmentation, EmptiesANodeOntoTheHolesOfOthers) {
  // The case of three nodes with 7, 6 and 7 of 8 used while a 4-GPU job waits, in small.
  Scheduler s = scheduler_of({node("a", 4), node("b", 4), node("c", 4)});
  put(s, 0, whole(3));
  put(s, 1, whole(3));
  const Movable single = put(s, 2, whole(1));
  const DefragmentationPlan plan = plan_defragmentation(s, {single}, {});
  ASSERT_EQ(plan.moves.size(), 1u);
  EXPECT_EQ(plan.moves[0].from.node, 2);
  EXPECT_EQ(plan.moves[0].to.node, 0);
  EXPECT_EQ(plan.emptied, std::vector<NodeId>{2});
  EXPECT_EQ(plan.gpus_gained, 1);
  EXPECT_EQ(plan.price, 10);
}

TEST(Defragmentation, OnlyProposes) {
  Scheduler s = scheduler_of({node("a", 4), node("b", 4)});
  put(s, 0, whole(3));
  const Movable single = put(s, 1, whole(1));
  const std::uint64_t before = s.snapshot().digest();
  EXPECT_EQ(plan_defragmentation(s, {single}, {}).moves.size(), 1u);
  EXPECT_EQ(s.snapshot().digest(), before);
}

TEST(Defragmentation, MovesNothingWhenANodeCannotBeEmptied) {
  Scheduler s = scheduler_of({node("a", 4), node("b", 4)});
  put(s, 0, whole(3));
  const Movable one = put(s, 1, whole(1));
  const Movable two = put(s, 1, whole(2));
  const std::uint64_t before = s.snapshot().digest();
  EXPECT_TRUE(plan_defragmentation(s, {one, two}, {}).moves.empty());
  EXPECT_EQ(s.snapshot().digest(), before);
}

TEST(Defragmentation, RespectsDisruptionBudgets) {
  Scheduler s = scheduler_of({node("a", 4), node("b", 4), node("c", 4)});
  put(s, 0, whole(2));
  const Movable first = put(s, 1, whole(1), "team");
  const Movable second = put(s, 2, whole(1), "team");
  DefragmentationLimits limits;
  limits.budgets["team"] = 1;
  EXPECT_EQ(plan_defragmentation(s, {first, second}, limits).moves.size(), 1u);
  limits.budgets["team"] = 0;
  EXPECT_TRUE(plan_defragmentation(s, {first, second}, limits).moves.empty());
  limits.budgets["team"] = 2;
  EXPECT_EQ(plan_defragmentation(s, {first, second}, limits).moves.size(), 2u);
}

TEST(Defragmentation, MovesMigSlicesToWhereTheirProfileMayLie) {
  std::vector<model::NodeSpec> nodes{node("a", 1), node("b", 1)};
  for (model::NodeSpec& spec : nodes) {
    spec.mig_gpus = 1;
    spec.mig_profiles = {{"3g.20gb", 4, {0, 4}}};
  }
  Scheduler s = scheduler_of(std::move(nodes));
  const auto half = test::asking({model::GpuKind::kMig, 1, 0, 0, 0, "3g.20gb"});
  const Movable kept = put(s, 0, half);
  const Movable moved = put(s, 1, half);
  const DefragmentationPlan plan = plan_defragmentation(s, {moved}, {});
  ASSERT_EQ(plan.moves.size(), 1u);
  EXPECT_EQ(plan.moves[0].to.node, 0);
  const auto mask = [&](const Movable& m) {
    return s.snapshot().find(m.reservation)->placement.gpus.at(0).mig_mask;
  };
  EXPECT_EQ(plan.moves[0].to.gpus.at(0).mig_mask & mask(kept), 0);
}

TEST(Defragmentation, PaysNoMoreThanAGpuIsWorth) {
  Scheduler s = scheduler_of({node("a", 4), node("b", 4)});
  put(s, 0, whole(3));
  const Movable single = put(s, 1, whole(1));
  DefragmentationLimits limits;
  limits.most_price_per_gpu = 9;
  EXPECT_TRUE(plan_defragmentation(s, {single}, limits).moves.empty());
  limits.most_price_per_gpu = 10;
  EXPECT_EQ(plan_defragmentation(s, {single}, limits).moves.size(), 1u);
}

}  // namespace
}  // namespace aliquot::scheduler
