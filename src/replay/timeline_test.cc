#include "replay/timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>

#include "scheduler/policies.h"

namespace aliquot::replay {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

constexpr model::Bytes kGiB = model::Bytes{1} << 30;

model::NodeSpec node(std::string name, int gpus) {
  model::NodeSpec spec;
  spec.name = std::move(name);
  spec.cpu_milli = 32'000;
  spec.memory_bytes = 128 * kGiB;
  spec.gpu_count = gpus;
  if (gpus > 0) spec.gpu = {"A100", 80, 40 * kGiB, 312};
  return spec;
}

Job job(std::string name, std::int64_t arrival, std::int64_t duration, int gpus, int milli,
        model::Bytes memory = 0) {
  Job made;
  made.request.name = std::move(name);
  made.request.containers = {{"main", 1'000, kGiB, std::nullopt}};
  const bool whole = milli == 1000;
  if (gpus > 0)
    made.request.containers[0].gpu =
        model::GpuAsk{whole ? model::GpuKind::kWhole : model::GpuKind::kShare,
                      gpus,
                      whole ? 0 : milli,
                      memory,
                      0,
                      {}};
  made.arrival_s = arrival;
  made.duration_s = duration;
  return made;
}

Timeline run(const std::vector<model::NodeSpec>& nodes, const Trace& trace,
             const std::string& policy = "binpack") {
  TimelinePlan plan;
  plan.policy = policy;
  Result<Timeline> timeline = run_timeline({"test", nodes, {}, {}}, trace, plan);
  EXPECT_TRUE(timeline) << timeline.error().message;
  return timeline ? *std::move(timeline) : Timeline{};
}

// One node of two GPUs. a takes both for 10 s; b waits for it, c (never fits) is refused at once.
TEST(Timeline, PlacesDelaysAndRefusesAsComputedByHand) {
  const Trace trace{"t",
                    {job("a", 100, 10, 2, 1000), job("b", 104, 20, 1, 1000),
                     job("c", 105, 5, 3, 1000), job("d", 106, 4, 1, 500)}};
  const Timeline timeline = run({node("n", 2)}, trace);
  ASSERT_EQ(timeline.outcomes.size(), 4u);
  EXPECT_EQ(timeline.outcomes[0].fate, Fate::kPlaced);
  EXPECT_EQ(timeline.outcomes[0].reason, "");
  EXPECT_EQ(timeline.outcomes[1].fate, Fate::kDelayed);
  EXPECT_EQ(timeline.outcomes[1].start_s, 110);
  EXPECT_EQ(timeline.outcomes[1].end_s, 130);
  EXPECT_THAT(timeline.outcomes[1].reason, StartsWith("not now: 1 node"));
  EXPECT_EQ(timeline.outcomes[2].fate, Fate::kRefused);
  EXPECT_THAT(timeline.outcomes[2].reason, StartsWith("never: 1 node"));
  EXPECT_EQ(timeline.outcomes[3].start_s, 110);
  EXPECT_EQ(timeline.end_s, 130);
  EXPECT_THAT(waits_of(trace, timeline), ElementsAre(0, 4, 6));
  // Until the last arrival (100..106) both GPUs were held all the time; b waited 2 of the 6 s.
  EXPECT_DOUBLE_EQ(timeline.mean_used, 1.0);
  EXPECT_DOUBLE_EQ(timeline.peak_used, 1.0);
  EXPECT_DOUBLE_EQ(timeline.mean_waiting, 2.0 / 6);
}

TEST(Timeline, SamplesWhatHoldsEachSecondOfAShortTrace) {
  const Trace trace{"t",
                    {job("a", 0, 2, 1, 1000), job("b", 1, 3, 1, 400), job("c", 1, 1, 2, 1000)}};
  const Timeline timeline = run({node("n", 2), node("cpus", 0)}, trace);
  std::vector<std::int64_t> used;
  std::vector<std::int64_t> waiting;
  for (const Sample& sample : timeline.samples) {
    used.push_back(sample.used_milli);
    waiting.push_back(sample.waiting);
    EXPECT_EQ(sample.node_percent[1], kNoGpu);
    EXPECT_EQ(sample.node_percent[0], sample.used_milli / 20);
  }
  EXPECT_THAT(used, ElementsAre(1000, 1400, 400, 400, 2000, 0));
  EXPECT_THAT(waiting, ElementsAre(0, 1, 1, 1, 0, 0));
}

// Jobs of one whole GPU only, and one GPU of each node half taken: what is free beside the half
// cannot be used by them.
TEST(Timeline, MeasuresFragmentsForTheTracesOwnMix) {
  Trace trace{"t", {job("share", 0, 10, 1, 600)}};
  for (int i = 0; i < 99; ++i) trace.jobs.push_back(job("w" + std::to_string(i), 5, 1, 1, 1000));
  const Timeline timeline = run({node("n", 2)}, trace);
  // The mix is cut at 95 % of the jobs: whole GPUs alone. 400 milli beside the share are lost.
  EXPECT_EQ(timeline.samples.front().used_milli, 600);
  EXPECT_EQ(timeline.samples.front().fragmented_milli, 400);
}

TEST(Timeline, CountsMemoryWhereItIsScarcerThanCompute) {
  const Trace trace{"t", {job("a", 0, 2, 1, 100, 20 * kGiB)}};
  const Timeline timeline = run({node("n", 1)}, trace);
  EXPECT_EQ(timeline.samples.front().used_milli, 500);
}

// First come first of those that fit; the larger one is passed, which timeline.h says.
TEST(Timeline, RetriesInOrderOfArrivalWhenSomethingLeaves) {
  const Trace trace{"t",
                    {job("a", 0, 10, 1, 1000), job("long", 0, 20, 1, 1000),
                     job("both", 1, 5, 2, 1000), job("c", 2, 5, 1, 1000), job("d", 3, 5, 1, 1000)}};
  const Timeline timeline = run({node("n", 2)}, trace);
  EXPECT_EQ(timeline.outcomes[3].start_s, 10);
  EXPECT_EQ(timeline.outcomes[4].start_s, 15);
  EXPECT_EQ(timeline.outcomes[2].start_s, 20);
}

TEST(Timeline, LeavesBeforeArrivingWithinASecond) {
  const Trace trace{"t", {job("a", 0, 10, 1, 1000), job("b", 10, 10, 1, 1000)}};
  EXPECT_EQ(run({node("n", 1)}, trace).outcomes[1].fate, Fate::kPlaced);
}

TEST(Timeline, KeepsTheNumberOfSamplesBoundedHoweverLongItTakes) {
  Trace trace{"t", {}};
  for (int i = 0; i < 200; ++i)
    trace.jobs.push_back(job("j" + std::to_string(i), i, 5000, 1, 1000));
  const Timeline timeline = run({node("n", 1)}, trace);
  EXPECT_EQ(timeline.end_s, 200 * 5000);
  EXPECT_LE(timeline.samples.size(), 801u);
  EXPECT_GE(timeline.samples.size(), 400u);
  for (std::size_t i = 2; i + 1 < timeline.samples.size(); ++i)
    EXPECT_EQ(timeline.samples[i].time_s - timeline.samples[i - 1].time_s,
              timeline.samples[1].time_s - timeline.samples[0].time_s);
  EXPECT_EQ(timeline.samples.back().time_s, timeline.end_s);
}

TEST(Timeline, OfNothingIsEmpty) {
  const Timeline timeline = run({node("n", 1)}, {"t", {}});
  EXPECT_TRUE(timeline.outcomes.empty());
  EXPECT_EQ(timeline.total_milli, 1000);
  EXPECT_EQ(timeline.mean_used, 0);
}

TEST(Timeline, StartsAllPodsOfAJobOrNone) {
  Trace trace{"t", {job("one", 0, 10, 1, 1000), job("gang", 1, 5, 2, 1000)}};
  trace.jobs[1].pods = 2;
  const Timeline timeline = run({node("a", 2), node("b", 2)}, trace);
  const JobOutcome& gang = timeline.outcomes[1];
  EXPECT_EQ(gang.fate, Fate::kDelayed);
  EXPECT_THAT(gang.reason, StartsWith("not now: no domain of level 0 holds all of it"));
  EXPECT_EQ(gang.start_s, 10);
  ASSERT_EQ(gang.placements.size(), 2u);
  EXPECT_NE(gang.placements[0].node, gang.placements[1].node);
  EXPECT_DOUBLE_EQ(gang.held_gpu_s, 20);
  EXPECT_EQ(timeline.end_s, 15);
}

// Two jobs that each use 900 of one GPU, the second for 100 s of work from second 50 on.
TEST(Timeline, SlowsNeighboursDownUnderTheTimeModelAndLetsThemCatchUp) {
  Trace trace{"t", {job("a", 0, 100, 1, 500), job("b", 50, 100, 1, 500)}};
  for (Job& one : trace.jobs) one.work.used_milli = 900;
  TimelinePlan plan;
  plan.policy = "binpack";
  plan.time = TimeModel::kModelled;
  const auto timeline = run_timeline({"c", {node("n", 1)}, {}, {}}, trace, plan);
  ASSERT_TRUE(timeline) << timeline.error().message;
  // From 50 on each gets 500 of 900: a's last 50 s take 90. Then b has 50 s left, alone.
  EXPECT_EQ(timeline->outcomes[0].end_s, 140);
  EXPECT_EQ(timeline->outcomes[1].end_s, 190);
  EXPECT_DOUBLE_EQ(timeline->outcomes[0].held_gpu_s, 70);
  EXPECT_DOUBLE_EQ(timeline->outcomes[0].used_gpu_s, 90) << "it borrowed while it was alone";
  EXPECT_DOUBLE_EQ(timeline->mean_busy, 0.9);
}

TEST(Timeline, ScattersWholeGpusWithoutTouchingAnythingElse) {
  Trace trace{"t", {}};
  for (int i = 0; i < 40; ++i) trace.jobs.push_back(job("j" + std::to_string(i), i, 7, 2, 1000));
  TimelinePlan plan;
  plan.policy = "binpack";
  const Cluster cluster{"c", {node("n", 8), node("m", 8)}, {}, {}};
  const auto packed = run_timeline(cluster, trace, plan);
  plan.scatter = true;
  const auto scattered = run_timeline(cluster, trace, plan);
  ASSERT_TRUE(packed && scattered);
  int moved = 0;
  for (std::size_t i = 0; i < trace.jobs.size(); ++i) {
    const model::Placement& one = packed->outcomes[i].placements[0];
    const model::Placement& other = scattered->outcomes[i].placements[0];
    EXPECT_EQ(packed->outcomes[i].start_s, scattered->outcomes[i].start_s);
    EXPECT_NE(other.gpus[0].gpu, other.gpus[1].gpu);
    moved += one.gpus != other.gpus;
  }
  EXPECT_GT(moved, 20);
}

TEST(Timeline, NamesThePoliciesThereAre) {
  TimelinePlan plan;
  plan.policy = "nosuch";
  const auto timeline = run_timeline({"c", {node("n", 1)}, {}, {}}, {"t", {}}, plan);
  ASSERT_FALSE(timeline);
  EXPECT_THAT(timeline.error().message, HasSubstr("fgd"));
}

// ---- properties

struct Case {
  std::vector<model::NodeSpec> nodes;
  Trace trace{"random", {}};
};

Case random_case(std::uint64_t seed) {
  std::mt19937_64 engine(seed);
  const auto draw = [&](std::uint64_t bound) { return static_cast<int>(engine() % bound); };
  Case made;
  for (int i = 0; i < 5; ++i) made.nodes.push_back(node("n" + std::to_string(i), draw(5)));
  std::int64_t at = 0;
  for (int i = 0; i < 300; ++i) {
    at += draw(20);
    const int kind = draw(4);
    const int gpus = kind == 0 ? 0 : kind == 1 ? 1 + draw(5) : 1;
    const int milli = kind == 1 ? 1000 : 100 * (1 + draw(9));
    const model::Bytes memory = kind == 3 ? draw(41) * kGiB : 0;
    made.trace.jobs.push_back(job("j" + std::to_string(i), at, 1 + draw(400), gpus, milli, memory));
  }
  return made;
}

// Adds up everything that is held at each start; independent of the scheduler's own books.
void expect_nothing_over_given(const Case& c, const Timeline& timeline) {
  for (const JobOutcome& start : timeline.outcomes) {
    if (!start.ran()) continue;
    std::map<std::pair<int, int>, std::pair<int, model::Bytes>> held;  // node, GPU: milli, bytes
    std::map<int, std::int64_t> cpu;
    for (const JobOutcome& other : timeline.outcomes) {
      if (!other.ran() || other.start_s > start.start_s || other.end_s <= start.start_s) continue;
      cpu[other.placements[0].node] += other.placements[0].cpu_milli;
      for (const model::GpuPart& part : other.placements[0].gpus) {
        auto& [milli, bytes] = held[{other.placements[0].node, part.gpu}];
        milli += part.whole ? 1000 : part.cores_milli;
        bytes += part.whole ? 0 : part.memory_bytes;
      }
    }
    for (const auto& [where, amounts] : held) {
      EXPECT_LT(where.second, c.nodes[static_cast<std::size_t>(where.first)].gpu_count);
      EXPECT_LE(amounts.first, 1000);
      EXPECT_LE(amounts.second, 40 * kGiB);
    }
    for (const auto& [where, milli] : cpu) EXPECT_LE(milli, 32'000);
  }
}

TEST(TimelineProperty, NothingIsOverGivenAndEveryJobHasAFateUnderEveryPolicy) {
  for (const scheduler::PolicyRow& policy : scheduler::policies()) {
    const Case c = random_case(7);
    const Timeline timeline = run(c.nodes, c.trace, std::string(policy.name));
    SCOPED_TRACE(policy.name);
    expect_nothing_over_given(c, timeline);
    for (std::size_t i = 0; i < c.trace.jobs.size(); ++i) {
      const JobOutcome& outcome = timeline.outcomes[i];
      EXPECT_EQ(outcome.reason.empty(), outcome.fate == Fate::kPlaced);
      EXPECT_NE(outcome.fate, Fate::kWaiting);  // everything leaves at last
      if (!outcome.ran()) continue;
      EXPECT_EQ(outcome.start_s > c.trace.jobs[i].arrival_s, outcome.fate == Fate::kDelayed);
      EXPECT_GE(outcome.start_s, c.trace.jobs[i].arrival_s);
      EXPECT_EQ(outcome.end_s - outcome.start_s, c.trace.jobs[i].duration_s);
    }
    EXPECT_EQ(timeline.samples.back().used_milli, 0);
    EXPECT_EQ(timeline.samples.back().waiting, 0);
  }
}

TEST(TimelineProperty, IsTheSameEveryTime) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const Case c = random_case(seed);
    const Timeline once = run(c.nodes, c.trace, "fgd");
    const Timeline again = run(c.nodes, c.trace, "fgd");
    expect_nothing_over_given(c, once);
    EXPECT_EQ(once.mean_fragmented, again.mean_fragmented);
    for (std::size_t i = 0; i < once.outcomes.size(); ++i)
      EXPECT_EQ(once.outcomes[i].placements, again.outcomes[i].placements);
  }
}

}  // namespace
}  // namespace aliquot::replay
