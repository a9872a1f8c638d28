// Gangs on machines with NICs: policy topology must not lose to nodes and GPUs taken at random.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <utility>

#include "cli/replay_cluster.h"
#include "replay/timeline.h"

namespace aliquot::cli {
namespace {

using replay::Job;
using replay::Timeline;
using replay::Trace;

constexpr std::uint64_t kRandomRuns = 3;

void add(Trace& trace, std::int64_t arrival_s, int pods, int gpus, std::int64_t all_reduce_mb_s) {
  Job job;
  job.request = replay::whole_gpu_request("j" + std::to_string(trace.jobs.size()), gpus, 1'000);
  job.arrival_s = arrival_s;
  job.duration_s = 1'000;
  job.pods = pods;
  job.work.all_reduce_mb_s = all_reduce_mb_s;
  trace.jobs.push_back(std::move(job));
}

// Gangs of every form among jobs of one and two GPUs, one every `every_s` in the mean.
Trace mixed(std::uint64_t seed, std::int64_t every_s) {
  Trace trace{"mixed", {}};
  std::mt19937_64 random(seed);
  const auto up_to = [&](int most) { return 1 + static_cast<int>(random() % std::uint64_t(most)); };
  std::int64_t now = 0;
  for (int i = 0; i < 120; ++i) {
    now += static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(2 * every_s));
    switch (random() % 6) {
      case 0:
        add(trace, now, 2, 8, 20'000);
        break;
      case 1:
        add(trace, now, 1 + up_to(3), 4, 10'000);
        break;
      case 2:
        add(trace, now, 1 + up_to(5), 2, 10'000);
        break;
      case 3:
        add(trace, now, 1 + up_to(8), 1, 5'000);
        break;
      default:
        add(trace, now, 1, up_to(2), 2'000);
    }
  }
  return trace;
}

Timeline run(const replay::Cluster& cluster, const Trace& trace, const std::string& policy,
             std::uint64_t seed) {
  replay::TimelinePlan plan;
  plan.policy = policy;
  plan.seed = seed;
  plan.time = replay::TimeModel::kModelled;
  plan.scatter = policy == "random";
  auto timeline = run_timeline(cluster, trace, plan);
  EXPECT_TRUE(timeline) << timeline.error().message;
  return *std::move(timeline);
}

double seconds(const replay::JobOutcome& outcome) {
  EXPECT_TRUE(outcome.ran());
  return static_cast<double>(outcome.end_s - outcome.start_s);
}

// Run time of all gangs, against the mean of random runs: 1 is equal.
double ratio_of_gangs(const replay::Cluster& cluster, const Trace& trace) {
  const auto sum = [&](const Timeline& timeline) {
    double all = 0;
    for (std::size_t i = 0; i < trace.jobs.size(); ++i)
      if (trace.jobs[i].pods > 1) all += seconds(timeline.outcomes[i]);
    return all;
  };
  double random = 0;
  for (std::uint64_t seed = 1; seed <= kRandomRuns; ++seed)
    random += sum(run(cluster, trace, "random", seed)) / kRandomRuns;
  return sum(run(cluster, trace, "topology", 0)) / random;
}

// Whether the nodes are crowded or nearly empty.
TEST(GangsByLinks, AreShorterThanAtRandomWhereRailsDiffer) {
  for (const char* machines : {"a100x8x4", "h100x8x4"})
    for (const std::int64_t every_s : {100, 600}) {
      const auto cluster = cluster_of(machines);
      ASSERT_TRUE(cluster) << cluster.error().message;
      EXPECT_LT(ratio_of_gangs(*cluster, mixed(1, every_s)), 0.97)
          << machines << ", a job every " << every_s << " s";
    }
}

// One gang among jobs that sit there already.
TEST(GangsByLinks, AreNeverLongerThanTheMeanOfRandom) {
  int shorter = 0;
  for (const char* machines : {"a100x8x4", "h100x8x4"}) {
    const auto cluster = cluster_of(machines);
    ASSERT_TRUE(cluster) << cluster.error().message;
    std::mt19937_64 random(7);
    for (const auto& [pods, gpus] : {std::pair{2, 8}, {2, 5}, {3, 4}, {9, 1}, {6, 2}, {2, 7}}) {
      Trace trace{"one", {}};
      for (std::uint64_t busy = random() % 8; busy > 0; --busy) add(trace, 0, 1, 1, 0);
      add(trace, 1, pods, gpus, 20'000);
      const auto gang_s = [&](const std::string& policy, std::uint64_t seed) {
        return seconds(run(*cluster, trace, policy, seed).outcomes.back());
      };
      double mean = 0;
      for (std::uint64_t seed = 1; seed <= 8; ++seed) mean += gang_s("random", seed) / 8;
      const double by_links = gang_s("topology", 0);
      EXPECT_LE(by_links, mean) << machines << ", " << pods << " pods of " << gpus;
      if (by_links < mean) ++shorter;
    }
  }
  EXPECT_GE(shorter, 8);  // of 12: whole nodes leave no choice
}

}  // namespace
}  // namespace aliquot::cli
