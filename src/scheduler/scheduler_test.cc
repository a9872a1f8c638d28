#include "scheduler/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/test_cluster.h"

namespace aliquot::scheduler {
namespace {

using model::GpuKind;
using test::kGiB;
using test::node;
using test::scheduler_of;
using test::share;
using test::whole;
using ::testing::HasSubstr;

Explanation why(Scheduler& s, const model::Request& request) {
  return s.explain(*s.classify(request));
}

TEST(Scheduler, PlacesAShareAndReservesExactlyItsBytes) {
  Scheduler s = scheduler_of({node("n0", 1)});
  const Decision d = *s.place(share(300, 10 * kGiB));
  ASSERT_EQ(d.outcome, Outcome::kPlaced);
  EXPECT_EQ(d.placement.gpus.at(0), (model::GpuPart{0, 0, 10 * kGiB, 300, false, 0}));
  EXPECT_EQ(s.snapshot().state(0).gpus[0].memory, 30 * kGiB);
  EXPECT_EQ(s.snapshot().state(0).gpus[0].cores, 700);
}

TEST(Scheduler, RefusesTheByteThatDoesNotFit) {
  Scheduler s = scheduler_of({node("n0", 1)});
  ASSERT_EQ(s.place(share(10, 30 * kGiB))->outcome, Outcome::kPlaced);
  EXPECT_EQ(s.place(share(10, 10 * kGiB + 1))->outcome, Outcome::kNotNow);
  EXPECT_EQ(s.place(share(10, 10 * kGiB))->outcome, Outcome::kPlaced);
}

TEST(Scheduler, SaysNeverWhenAnEmptyClusterWouldNotDo) {
  Scheduler s = scheduler_of({node("n0", 4), node("n1", 4)});
  EXPECT_EQ(s.place(whole(8))->outcome, Outcome::kNever);
  EXPECT_THAT(why(s, whole(8)).text(), HasSubstr("2 nodes: 4 GPUs in all, 8 asked"));
}

TEST(Scheduler, SaysWhatWouldHaveToFreeUpWhenItIsNotNow) {
  Scheduler s = scheduler_of({node("n0", 2), node("n1", 2)});
  ASSERT_EQ(s.place(whole(1))->outcome, Outcome::kPlaced);
  ASSERT_EQ(s.place(whole(2))->outcome, Outcome::kPlaced);
  const Explanation e = why(s, whole(2));
  EXPECT_EQ(e.outcome, Outcome::kNotNow);
  EXPECT_THAT(e.text(), HasSubstr("1 node: 1 GPUs free, 2 asked"));
  EXPECT_EQ(e.would_help, "1 more GPU on n0");
}

TEST(Scheduler, FoldsReasonsByKind) {
  Scheduler s = scheduler_of({node("a", 1, "T4"), node("b", 1, "T4"), node("c", 0, "")});
  model::Request request = whole(1);
  request.gpu_models = {"A100"};
  const Explanation e = why(s, request);
  EXPECT_EQ(e.outcome, Outcome::kNever);
  EXPECT_EQ(e.text(), "never: 2 nodes: T4 GPUs, A100 asked; 1 node: no GPU, A100 asked");
}

TEST(Scheduler, ComparesModelsByExactName) {
  Scheduler s = scheduler_of({node("a", 1, "A100")});
  model::Request request = whole(1);
  request.gpu_models = {"A10"};
  EXPECT_EQ(s.place(request)->outcome, Outcome::kNever);
  request.gpu_models = {"A100"};
  EXPECT_EQ(s.place(request)->outcome, Outcome::kPlaced);
}

TEST(Scheduler, BreaksTiesByRank) {
  Scheduler s = scheduler_of({node("z", 1), node("a", 1)});
  EXPECT_EQ(s.place(whole(1))->placement.node, 0);
}

TEST(Scheduler, KeepsCordonedNodesOut) {
  Scheduler s = scheduler_of({node("a", 1), node("b", 1)});
  s.snapshot().cordon(0, true);
  EXPECT_EQ(s.place(whole(1))->placement.node, 1);
  EXPECT_EQ(s.place(whole(1))->outcome, Outcome::kNotNow);
  EXPECT_THAT(why(s, whole(1)).text(), HasSubstr("1 node: cordoned"));
}

TEST(Scheduler, TakesMeasuredForeignMemoryAsAnUpperBound) {
  Scheduler s = scheduler_of({node("a", 1)});
  s.snapshot().set_foreign_memory(0, 0, 35 * kGiB);
  EXPECT_EQ(s.place(share(100, 6 * kGiB))->outcome, Outcome::kNotNow);
  EXPECT_EQ(s.place(share(100, 5 * kGiB))->outcome, Outcome::kPlaced);
}

TEST(Scheduler, PromisesMoreThanThereIsOnlyWhereConfigured) {
  model::NodeSpec generous = node("a", 1);
  generous.overcommit = {100, 200};
  Scheduler s = scheduler_of({generous});
  EXPECT_EQ(s.place(share(900, kGiB))->outcome, Outcome::kPlaced);
  EXPECT_EQ(s.place(share(900, kGiB))->outcome, Outcome::kPlaced);
  EXPECT_EQ(s.place(share(900, kGiB))->outcome, Outcome::kNotNow);
}

TEST(Scheduler, PlacesOnlyWithinTheNodesAllowed) {
  Scheduler s = scheduler_of({node("a", 1), node("b", 1), node("c", 1)});
  const ClassId id = *s.classify(whole(1));
  const std::vector<NodeId> within{2};
  EXPECT_EQ(s.place(id, within).placement.node, 2);
  EXPECT_EQ(s.place(id, within).outcome, Outcome::kNotNow);
}

TEST(Scheduler, FloorsRefuseWhatIsNotKnownToMeetThem) {
  Scheduler s = scheduler_of({node("known", 1), node("unknown", 1)});
  model::Request request = whole(1);
  request.floor.tflops = 300;
  EXPECT_EQ(s.place(request)->placement.node, 0);
  request.floor.compute_capability = 90;
  EXPECT_EQ(s.place(request)->outcome, Outcome::kNever);
}

TEST(Scheduler, TakesMemoryInPercentOfEachGpu) {
  Scheduler s = scheduler_of({node("n", 1)});
  const Decision d = *s.place(test::asking({GpuKind::kShare, 1, 0, 0, 25, {}}));
  EXPECT_EQ(d.placement.gpus.at(0).memory_bytes, 10 * kGiB);
}

TEST(Scheduler, GivesEachContainerItsPart) {
  Scheduler s = scheduler_of({node("n", 2)});
  model::Request request;
  request.containers = {{"small", 0, 0, model::GpuAsk{GpuKind::kShare, 1, 400, kGiB, 0, {}}},
                        {"plain", 0, 0, std::nullopt},
                        {"large", 0, 0, model::GpuAsk{GpuKind::kWhole, 1, 0, 0, 0, {}}}};
  const Decision d = *s.place(request);
  ASSERT_EQ(d.placement.gpus.size(), 2u);
  EXPECT_EQ(d.placement.gpus[0].container, 2);
  EXPECT_EQ(d.placement.gpus[1].container, 0);
  EXPECT_NE(d.placement.gpus[0].gpu, d.placement.gpus[1].gpu);
}

TEST(Scheduler, NeverPutsContainersOfOneRequestIntoMoreThanAGpuHas) {
  Scheduler s = scheduler_of({node("n", 1)});
  model::Request request;
  for (int i = 0; i < 3; ++i)
    request.containers.push_back({"c", 0, 0, model::GpuAsk{GpuKind::kShare, 1, 400, 0, 0, {}}});
  EXPECT_EQ(s.place(request)->outcome, Outcome::kNever);
  EXPECT_THAT(why(s, request).text(), HasSubstr("not all together"));
}

TEST(Scheduler, InitContainersReuseTheGpusOfTheOthers) {
  Scheduler s = scheduler_of({node("n", 1)});
  model::Request request = share(400, kGiB);
  request.init_containers = {{"init", 2'000, 0, model::GpuAsk{GpuKind::kShare, 1, 700, 0, 0, {}}}};
  const Decision d = *s.place(request);
  ASSERT_EQ(d.placement.gpus.size(), 1u);
  EXPECT_EQ(d.placement.gpus[0].cores_milli, 700);
  EXPECT_EQ(d.placement.cpu_milli, 2'000);
}

TEST(Scheduler, MigSlicesGoOnlyWhereAProfileMayLie) {
  model::NodeSpec spec = node("n", 2);
  spec.mig_gpus = 1;
  spec.mig_profiles = {{"1g.5gb", 1, {0, 1, 2, 3, 4, 5, 6}}, {"3g.20gb", 4, {0, 4}}};
  Scheduler s = scheduler_of({spec});
  const auto slice = [](const char* profile) {
    return test::asking({GpuKind::kMig, 1, 0, 0, 0, profile});
  };
  // A small slice goes where it leaves both halves' worth of larger ones legal as long as it can.
  EXPECT_EQ(s.place(slice("1g.5gb"))->outcome, Outcome::kPlaced);
  EXPECT_EQ(s.place(slice("3g.20gb"))->outcome, Outcome::kPlaced);
  EXPECT_EQ(s.place(slice("3g.20gb"))->outcome, Outcome::kNotNow);
  EXPECT_EQ(s.place(slice("7g.40gb"))->outcome, Outcome::kNever);
  EXPECT_EQ(s.place(whole(2))->outcome, Outcome::kNever);
  EXPECT_EQ(s.place(whole(1))->placement.gpus.at(0).gpu, 1);
}

TEST(Scheduler, SaysOfEachNodeWhyItHasNoRoomForASlice) {
  model::NodeSpec mig = node("m", 1);
  mig.mig_gpus = 1;
  mig.mig_profiles = {{"7g.40gb", 8, {0}}};
  model::NodeSpec full = mig;
  full.name = "f";
  Scheduler s = scheduler_of({mig, full, node("whole", 1), node("none", 0)});
  const auto slice = test::asking({GpuKind::kMig, 1, 0, 0, 0, "7g.40gb"});
  for (int i = 0; i < 2; ++i) ASSERT_EQ(s.place(slice)->outcome, Outcome::kPlaced);
  EXPECT_THAT(s.explain(*s.classify(slice)).text(),
              testing::AllOf(testing::HasSubstr("2 nodes: no room for the MIG slices"),
                             testing::HasSubstr("2 nodes: no MIG profile of that name")));
}

TEST(Scheduler, TakesAFloorOfMemory) {
  model::NodeSpec small = node("small", 1);
  small.gpu.memory_bytes = 16 * kGiB;
  Scheduler s = scheduler_of({small, node("large", 1)});
  model::Request request = whole(1);
  request.floor.memory_bytes = 17 * kGiB;
  EXPECT_EQ(s.place(request)->placement.node, 1);
  EXPECT_THAT(s.explain(*s.classify(request)).text(),
              testing::HasSubstr("1 node: A100 GPUs are below a floor asked"));
}

// Requests of ever new sizes: what is remembered of them must not grow with their number.
TEST(Scheduler, ForgetsScoresInsteadOfGrowingWithoutEnd) {
  constexpr std::size_t kMost = 2'000;
  const auto nodes = [] { return std::vector{node("a", 4), node("b", 4), node("c", 2)}; };
  Scheduler bounded(nodes(), std::move(*make_policy("binpack", {})), kMost);
  Scheduler unbounded(nodes(), std::move(*make_policy("binpack", {})));
  std::vector<ReservationId> held;
  for (int i = 0; i < 3'000; ++i) {
    const model::Request request = test::share(1 + i % 400, model::Bytes{i} << 20);
    const Decision d = *bounded.place(request);
    const Decision same = *unbounded.place(request);
    ASSERT_EQ(d.outcome, same.outcome);
    ASSERT_EQ(d.placement, same.placement);
    // One class has room for half as much again as there are states, or twice that as it grows.
    ASSERT_LE(bounded.remembered(), kMost + 4 * bounded.snapshot().index().size());
    if (d.outcome == Outcome::kPlaced) held.push_back(d.reservation);
    if (held.size() < 12) continue;
    ASSERT_TRUE(bounded.snapshot().release(held.front()));
    ASSERT_TRUE(unbounded.snapshot().release(held.front()));
    held.erase(held.begin());
  }
  EXPECT_GT(unbounded.remembered(), 100 * kMost);
}

TEST(Scheduler, RefusesNodesTooFarFromTheirUsers) {
  model::NodeSpec cloud = node("cloud", 1);
  cloud.latency_us = 40'000;
  model::NodeSpec edge = node("edge", 1);
  edge.tier = model::Tier::kEdge;
  edge.latency_us = 4'000;
  Scheduler s = scheduler_of({cloud, edge});
  model::Request request = whole(1);
  request.max_latency_us = 10'000;
  EXPECT_EQ(s.place(request)->placement.node, 1);
  EXPECT_EQ(s.place(request)->outcome, Outcome::kNotNow);
}

TEST(Scheduler, SendsNonsenseBackWithTheContainersName) {
  Scheduler s = scheduler_of({node("n", 1)});
  const auto refused = s.place(test::asking({GpuKind::kShare, 1, 1'001, 0, 0, {}}));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("'main'"));
}

}  // namespace
}  // namespace aliquot::scheduler
