#include "scheduler/planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "scheduler/test_cluster.h"

namespace aliquot::scheduler {
namespace {

using test::node;
using test::scheduler_of;
using test::whole;

constexpr std::int64_t kGpu = 1'000;

// Guarantees of GPUs alone: everything else is guaranteed without bound.
QueueSpec queue(std::string name, std::int64_t guaranteed, std::int64_t limit = -1) {
  QueueSpec spec;
  spec.name = std::move(name);
  spec.guarantee = {guaranteed * kGpu, guaranteed * 40 * test::kGiB, guaranteed * 1'000,
                    guaranteed * test::kGiB};
  if (limit >= 0) spec.limit = {limit * kGpu, -1, -1, -1};
  return spec;
}

Job job(JobId id, int count, std::string queue_name = "q", int priority = 0) {
  Job j;
  j.id = id;
  j.queue = std::move(queue_name);
  j.priority = priority;
  j.gang = {"job", {{whole(count), 1}}, {}, {}};
  return j;
}

std::vector<JobId> jobs_of(const std::vector<Action>& actions, ActionKind kind) {
  std::vector<JobId> ids;
  for (const Action& action : actions)
    if (action.kind == kind) ids.push_back(action.job);
  return ids;
}

struct Fixture {
  Scheduler scheduler;
  Planner planner;
  Fixture(std::vector<model::NodeSpec> nodes, std::vector<QueueSpec> queues,
          PlannerOptions options = {})
      : scheduler(scheduler_of(std::move(nodes))),
        planner(*Planner::create(scheduler, std::move(queues), options)) {}
  std::vector<Action> submit_and_step(Job j, Nanoseconds now) {
    EXPECT_TRUE(planner.submit(std::move(j), now));
    return planner.step(now);
  }
};

TEST(Planner, StartsByPriorityThenAge) {
  Fixture f({node("n", 2)}, {queue("q", 0)});
  ASSERT_TRUE(f.planner.submit(job(1, 1), 1));
  ASSERT_TRUE(f.planner.submit(job(2, 1), 2));
  ASSERT_TRUE(f.planner.submit(job(3, 1, "q", 5), 3));
  EXPECT_THAT(jobs_of(f.planner.step(3), ActionKind::kStart), testing::ElementsAre(3, 1));
  EXPECT_THAT(f.planner.why_waiting(2), testing::HasSubstr("1 node: 0 GPUs free, 1 asked"));
}

TEST(Planner, SharesWhatIsBorrowedByWeight) {
  QueueSpec heavy = queue("heavy", 0);
  heavy.weight = 3;
  Fixture f({node("n", 8)}, {heavy, queue("light", 0)});
  for (JobId id = 1; id <= 8; ++id) ASSERT_TRUE(f.planner.submit(job(id, 1, "heavy"), 0));
  for (JobId id = 11; id <= 18; ++id) ASSERT_TRUE(f.planner.submit(job(id, 1, "light"), 0));
  (void)f.planner.step(0);
  EXPECT_EQ(f.planner.queues().used(0).gpu_milli, 6 * kGpu);
  EXPECT_EQ(f.planner.queues().used(1).gpu_milli, 2 * kGpu);
}

// Dominant shares: a GPU is an eighth of the GPUs; 16 of 64 CPU cores are a quarter of those.
TEST(Planner, ComparesQueuesByTheResourceThatEachUsesMostOf) {
  Fixture f({node("n", 8)}, {queue("gpus", 0), queue("cpus", 0)});
  for (JobId id = 1; id <= 8; ++id) {
    ASSERT_TRUE(f.planner.submit(job(id, 1, "gpus"), 0));
    Job cpus = job(10 + id, 1, "cpus");
    cpus.gang.members[0].request = test::share(100, 0);
    cpus.gang.members[0].request.containers[0].cpu_milli = 16'000;
    ASSERT_TRUE(f.planner.submit(std::move(cpus), 0));
  }
  std::vector<JobId> started = jobs_of(f.planner.step(0), ActionKind::kStart);
  ASSERT_GE(started.size(), 5u);
  started.resize(5);
  EXPECT_EQ(std::ranges::count_if(started, [](JobId id) { return id < 10; }), 3);
}

TEST(Planner, HoldsAQueueToItsLimit) {
  Fixture f({node("n", 8)}, {queue("q", 0, 2)});
  for (JobId id = 1; id <= 4; ++id) ASSERT_TRUE(f.planner.submit(job(id, 1), 0));
  EXPECT_EQ(jobs_of(f.planner.step(0), ActionKind::kStart).size(), 2u);
  EXPECT_THAT(f.planner.why_waiting(3), testing::HasSubstr("limit"));
}

TEST(Planner, StopsTheFewestJobsOfLowerPriority) {
  Fixture f({node("a", 4), node("b", 4)}, {queue("q", 0)});
  (void)f.submit_and_step(job(1, 2), 0);
  (void)f.submit_and_step(job(2, 2), 0);
  (void)f.submit_and_step(job(3, 3), 0);
  const auto actions = f.submit_and_step(job(4, 4, "q", 1), 0);
  // Node b needs one victim, node a two.
  EXPECT_THAT(jobs_of(actions, ActionKind::kStop), testing::ElementsAre(3));
  EXPECT_THAT(jobs_of(actions, ActionKind::kStart), testing::ElementsAre(4));
}

TEST(Planner, StopsWholeGangs) {
  Fixture f({node("a", 2), node("b", 2)}, {queue("q", 0)});
  Job gang = job(1, 2);
  gang.gang.members[0].count = 2;
  (void)f.submit_and_step(gang, 0);
  const auto actions = f.submit_and_step(job(2, 1, "q", 1), 0);
  EXPECT_THAT(jobs_of(actions, ActionKind::kStop), testing::ElementsAre(1));
  EXPECT_FALSE(f.planner.is_running(1));
  EXPECT_EQ(f.scheduler.snapshot().reservations().size(), 1u);
}

TEST(Planner, LeavesEqualPriorityAlone) {
  Fixture f({node("a", 1)}, {queue("q", 0)});
  (void)f.submit_and_step(job(1, 1), 0);
  EXPECT_TRUE(f.submit_and_step(job(2, 1), 1).empty());
}

TEST(Planner, ShieldsAJobUntilItRanItsMinimum) {
  Fixture f({node("a", 1)}, {queue("q", 0)}, {.min_runtime = 100});
  (void)f.submit_and_step(job(1, 1), 0);
  EXPECT_TRUE(f.submit_and_step(job(2, 1, "q", 1), 99).empty());
  EXPECT_THAT(jobs_of(f.planner.step(100), ActionKind::kStop), testing::ElementsAre(1));
}

TEST(Planner, AVictimDoesNotComeBackOverTheJobThatDisplacedIt) {
  Fixture f({node("a", 1)}, {queue("q", 0)});
  (void)f.submit_and_step(job(1, 1), 0);
  (void)f.submit_and_step(job(2, 1, "q", 1), 1);
  for (Nanoseconds now = 2; now < 10; ++now) EXPECT_TRUE(f.planner.step(now).empty());
  EXPECT_TRUE(f.planner.is_running(2));
}

TEST(Planner, ReclaimsAGuaranteeFromAQueueThatBorrows) {
  Fixture f({node("a", 4)}, {queue("own", 2), queue("other", 2)});
  for (JobId id = 1; id <= 4; ++id) ASSERT_TRUE(f.planner.submit(job(id, 1, "other"), 0));
  EXPECT_EQ(jobs_of(f.planner.step(0), ActionKind::kStart).size(), 4u);
  ASSERT_TRUE(f.planner.submit(job(11, 1, "own"), 1));
  ASSERT_TRUE(f.planner.submit(job(12, 1, "own"), 1));
  ASSERT_TRUE(f.planner.submit(job(13, 1, "own"), 1));
  const auto actions = f.planner.step(1);
  EXPECT_EQ(jobs_of(actions, ActionKind::kStop).size(), 2u);
  EXPECT_THAT(jobs_of(actions, ActionKind::kStart), testing::ElementsAre(11, 12));
  // Both are at their guarantee now: nobody takes from the other any more.
  for (Nanoseconds now = 2; now < 10; ++now) EXPECT_TRUE(f.planner.step(now).empty());
}

TEST(Planner, BackfillsAroundABlockedHeadButNotIntoItsPlace) {
  Fixture f({node("a", 4), node("b", 1)}, {queue("q", 0)});
  Job running = job(1, 3);
  running.max_runtime = 100;
  (void)f.submit_and_step(running, 0);
  EXPECT_TRUE(f.submit_and_step(job(2, 4), 1).empty());
  // One GPU is free on a, but a job that may run for ever would hold up the head.
  const auto elsewhere = f.submit_and_step(job(3, 1), 2);
  ASSERT_EQ(elsewhere.size(), 1u);
  EXPECT_EQ(elsewhere[0].placements[0].node, 1);
  EXPECT_TRUE(f.submit_and_step(job(4, 1), 3).empty());
  // One that ends before the head's turn may use it.
  Job brief = job(5, 1);
  brief.max_runtime = 50;
  EXPECT_THAT(jobs_of(f.submit_and_step(brief, 4), ActionKind::kStart), testing::ElementsAre(5));
  Job late = job(6, 1);
  late.max_runtime = 98;
  ASSERT_TRUE(f.planner.finish(5));
  EXPECT_TRUE(f.submit_and_step(late, 5).empty());
}

TEST(Planner, AQueueAtItsLimitKeepsNoNodesFromOthers) {
  Fixture f({node("a", 4)}, {queue("q", 0, 1), queue("r", 0)});
  (void)f.submit_and_step(job(1, 1, "q"), 0);
  (void)f.submit_and_step(job(10, 2, "r"), 0);
  EXPECT_TRUE(f.submit_and_step(job(2, 1, "q"), 1).empty());
  EXPECT_THAT(jobs_of(f.submit_and_step(job(11, 1, "r"), 2), ActionKind::kStart),
              testing::ElementsAre(11));
}

TEST(Planner, AHeadIsNotStarvedByAStreamOfSmallJobs) {
  Fixture f({node("a", 4)}, {queue("q", 0)});
  for (JobId id = 1; id <= 4; ++id) (void)f.submit_and_step(job(id, 1), 0);
  (void)f.submit_and_step(job(100, 4), 1);
  for (JobId id = 1; id <= 4; ++id) {
    ASSERT_TRUE(f.planner.submit(job(200 + id, 1), 2));
    ASSERT_TRUE(f.planner.finish(id));
    (void)f.planner.step(static_cast<Nanoseconds>(2 + id));
  }
  EXPECT_TRUE(f.planner.is_running(100));
}

TEST(Planner, AnOwnerGetsItsChipAndTheOthersComeBack) {
  model::NodeSpec car = node("car", 1);
  car.tier = model::Tier::kDevice;
  car.owner = "driver";
  model::NodeSpec cloud = node("cloud", 1);
  cloud.tier = model::Tier::kCloud;
  cloud.latency_us = 50'000;
  Fixture f({car, cloud}, {queue("q", 0)});
  Job guest = job(1, 1);
  guest.preemptible = false;
  const auto first = f.submit_and_step(guest, 0);
  ASSERT_EQ(first.at(0).placements.at(0).node, 0);

  Job drive = job(2, 1);
  drive.tenant = "driver";
  drive.gang.members[0].request.max_latency_us = 1'000;
  const auto claimed = f.submit_and_step(drive, 1);
  ASSERT_EQ(claimed.size(), 3u);
  EXPECT_EQ(claimed[0], (Action{ActionKind::kStop, 1, {}, 2}));
  EXPECT_EQ(claimed[1].job, 2u);
  EXPECT_EQ(claimed[1].placements.at(0).node, 0);
  EXPECT_EQ(claimed[2].kind, ActionKind::kStart);
  EXPECT_EQ(claimed[2].placements.at(0).node, 1);

  EXPECT_TRUE(f.planner.step(2).empty());
  ASSERT_TRUE(f.planner.finish(2));
  const auto back = f.planner.step(3);
  ASSERT_EQ(back.size(), 1u);
  EXPECT_EQ(back[0].kind, ActionKind::kMove);
  EXPECT_EQ(back[0].placements.at(0).node, 0);
}

TEST(Planner, RefusesUnknownQueuesAndUsedIds) {
  Fixture f({node("a", 1)}, {queue("q", 0)});
  EXPECT_FALSE(f.planner.submit(job(1, 1, "none"), 0));
  ASSERT_TRUE(f.planner.submit(job(1, 1), 0));
  EXPECT_FALSE(f.planner.submit(job(1, 1), 0));
}

TEST(Queues, CannotGuaranteeMoreThanThereIs) {
  EXPECT_FALSE(QueueBook::create({queue("a", 3), queue("b", 2)}, {4 * kGpu, -1, -1, -1}));
}

}  // namespace
}  // namespace aliquot::scheduler
