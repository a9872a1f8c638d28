#include "scheduler/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/policies.h"

namespace aliquot::scheduler {
namespace {

using model::Bytes;
using model::GpuKind;
using ::testing::HasSubstr;

constexpr Bytes kGiB = Bytes{1} << 30;

model::NodeSpec node(std::string name, int gpus, std::string gpu_model = "A100") {
  model::NodeSpec spec;
  spec.name = std::move(name);
  spec.cpu_milli = 64'000;
  spec.memory_bytes = 256 * kGiB;
  spec.gpu_count = gpus;
  spec.gpu = {std::move(gpu_model), 80, 40 * kGiB, 312};
  return spec;
}

model::Request share(int cores, Bytes memory) {
  model::Request request;
  request.containers = {
      {"main", 1'000, kGiB, model::GpuAsk{GpuKind::kShare, 1, cores, memory, 0, {}}}};
  return request;
}

model::Request whole(int count) {
  model::Request request;
  request.containers = {{"main", 1'000, kGiB, model::GpuAsk{GpuKind::kWhole, count, 0, 0, 0, {}}}};
  return request;
}

Scheduler scheduler_of(std::vector<model::NodeSpec> nodes, std::string_view policy = "binpack") {
  return {std::move(nodes), std::move(*make_policy(policy, {}))};
}

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

}  // namespace
}  // namespace aliquot::scheduler
