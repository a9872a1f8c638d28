#include "scheduler/snapshot.h"

#include <gtest/gtest.h>

#include "scheduler/test_cluster.h"

namespace aliquot::scheduler {
namespace {

using test::kGiB;
using test::node;

model::Placement half_of_gpu(int gpu) {
  return {0, 1'000, kGiB, 1, {{gpu, 0, 20 * kGiB, 500, false, 0}}};
}

TEST(Snapshot, TakesAllOfAPlacementOrNothing) {
  Snapshot s({node("n", 2)});
  const std::uint64_t before = s.digest();
  model::Placement p = half_of_gpu(0);
  p.gpus.push_back({1, 0, 41 * kGiB, 0, false, 0});  // a byte more than there is would do
  const auto refused = s.reserve(p);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::kExhausted);
  EXPECT_EQ(s.digest(), before);
}

TEST(Snapshot, TwoPartsOnOneGpuCountTogether) {
  Snapshot s({node("n", 1)});
  model::Placement p = half_of_gpu(0);
  p.gpus.push_back({0, 1, 20 * kGiB + 1, 1, false, 0});
  EXPECT_FALSE(s.reserve(p));
  p.gpus.back().memory_bytes = 20 * kGiB;
  EXPECT_TRUE(s.reserve(p));
}

TEST(Snapshot, GivesBackOnceAndExactlyWhatWasTaken) {
  Snapshot s({node("n", 1)});
  const std::uint64_t before = s.digest();
  const ReservationId id = *s.reserve(half_of_gpu(0));
  EXPECT_TRUE(s.commit(id));
  EXPECT_TRUE(s.release(id));
  EXPECT_EQ(s.digest(), before);
  EXPECT_FALSE(s.release(id));
  EXPECT_FALSE(s.commit(id));
}

TEST(Snapshot, NeverUsesAnIdTwice) {
  Snapshot s({node("n", 1)});
  const ReservationId first = *s.reserve(half_of_gpu(0));
  ASSERT_TRUE(s.release(first));
  EXPECT_NE(*s.reserve(half_of_gpu(0)), first);
}

TEST(Snapshot, RefusesNonsense) {
  Snapshot s({node("n", 1)});
  EXPECT_EQ(s.reserve(half_of_gpu(1)).error().code, Errc::kInvalid);
  model::Placement elsewhere = half_of_gpu(0);
  elsewhere.node = 1;
  EXPECT_EQ(s.reserve(elsewhere).error().code, Errc::kInvalid);
  model::Placement negative = half_of_gpu(0);
  negative.gpus[0].memory_bytes = -1;
  EXPECT_EQ(s.reserve(negative).error().code, Errc::kInvalid);
}

TEST(Snapshot, RefusesANodeOfMoreGpusThanItCanServe) {
  Snapshot s({node("n", 1)});
  EXPECT_EQ(s.add_node(node("wide", 17)).error(),
            (Error{Errc::kInvalid, "add node wide: 17 GPUs, at most 16"}));
  EXPECT_EQ(s.size(), 1u);
  EXPECT_TRUE(s.add_node(node("sixteen", 16)));
}

TEST(Snapshot, AWholeGpuIsSharedWithNobody) {
  Snapshot s({node("n", 1)});
  ASSERT_TRUE(s.reserve({0, 0, 0, 2, {{0, 0, 0, 0, true, 0}}}));
  EXPECT_FALSE(s.reserve({0, 0, 0, 1, {{0, 0, 0, 0, false, 0}}}));
}

TEST(Snapshot, ForeignMemoryTakesNothingFromThosePlaced) {
  Snapshot s({node("n", 1)});
  const ReservationId id = *s.reserve(half_of_gpu(0));
  s.set_foreign_memory(0, 0, 100 * kGiB);
  EXPECT_EQ(s.state(0).gpus[0].memory, 0);
  EXPECT_FALSE(s.reserve(half_of_gpu(0)));
  s.suspend(id);
  s.resume(id);
  s.set_foreign_memory(0, 0, 0);
  EXPECT_EQ(s.state(0).gpus[0].memory, 20 * kGiB);
}

TEST(Snapshot, ASuspendedReservationLeavesItsRoomAndKeepsItsId) {
  Snapshot s({node("n", 1)});
  const ReservationId id = *s.reserve(half_of_gpu(0));
  const std::uint64_t before = s.digest();
  s.cordon(0, true);
  s.suspend(id);
  EXPECT_TRUE(s.state(0).gpus[0].idle);
  s.resume(id);
  s.cordon(0, false);
  EXPECT_EQ(s.digest(), before);
}

TEST(Snapshot, NodesInEqualStateShareIt) {
  Snapshot s({node("a", 2), node("b", 2)});
  EXPECT_EQ(s.state_id(0), s.state_id(1));
  // Which GPU is in use does not matter to a policy that reads no positions.
  ASSERT_TRUE(s.reserve(half_of_gpu(0)));
  model::Placement other = half_of_gpu(1);
  other.node = 1;
  ASSERT_TRUE(s.reserve(other));
  EXPECT_EQ(s.state_id(0), s.state_id(1));
  Snapshot by_position({node("a", 2), node("b", 2)}, {.positions = true, .kinds = false});
  ASSERT_TRUE(by_position.reserve(half_of_gpu(0)));
  ASSERT_TRUE(by_position.reserve(other));
  EXPECT_NE(by_position.state_id(0), by_position.state_id(1));
}

TEST(StateIndex, ForgetsStatesThatNobodyIsInAndKeepsTheRest) {
  StateIndex index;
  NodeState state;
  StateId at = kNoState;
  const StateId still = index.move(7, kNoState, state);
  for (int i = 1; !index.wants_compaction(); ++i) {
    state.cpu_milli = i;
    at = index.move(0, at, state);
  }
  const std::vector<StateId> renamed = index.compact();
  EXPECT_EQ(index.size(), 2u);
  EXPECT_EQ(index.generation(), 1u);
  EXPECT_EQ(index.first(renamed[still]), 7u);
  EXPECT_EQ(index.state(renamed[at]), state);
  state.cpu_milli = 0;
  EXPECT_EQ(index.move(3, kNoState, state), renamed[still]);
}

}  // namespace
}  // namespace aliquot::scheduler
