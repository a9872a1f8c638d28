#include "replay/answers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "support/topologies.h"

namespace aliquot::replay {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

Cluster cluster_of(const model::NodeTopology& node, int nodes) {
  Cluster cluster{"c", {}, {{"shape", node}}, {}};
  for (int i = 0; i < nodes; ++i) {
    model::NodeSpec spec;
    spec.name = "n" + std::to_string(i);
    spec.gpu_count = static_cast<int>(node.gpu_count());
    spec.gpu.name = "V100";
    spec.topology = "shape";
    spec.domains = {"leaf-" + std::to_string(i / 4)};
    cluster.nodes.push_back(std::move(spec));
  }
  return cluster;
}

void add(Trace& trace, std::int64_t arrival, int gpus, int pods, int milli, Work work) {
  Job job;
  job.request = whole_gpu_request("j" + std::to_string(trace.jobs.size()), gpus, 0);
  if (milli < 1000)
    job.request.containers[0].gpu = model::GpuAsk{model::GpuKind::kShare, gpus, milli, 0, 0, {}};
  job.arrival_s = arrival;
  job.duration_s = 1'000;
  job.pods = pods;
  job.work = std::move(work);
  trace.jobs.push_back(std::move(job));
}

// Jobs of two and three GPUs that come and go, so that what is free is never the same.
Trace training(int pods) {
  Trace trace{"t", {}};
  std::mt19937_64 random(11);
  for (std::uint64_t i = 0; i < 200; ++i)
    add(trace, static_cast<std::int64_t>(i * 150 + random() % 100),
        pods > 1 ? 1 : 2 + static_cast<int>(random() % 2), pods, 1000, {0, 5'000, 0, "V100"});
  return trace;
}

Answers answers_on(const Cluster& cluster, const Trace& trace) {
  const auto answered = answer_questions(cluster, trace, {"binpack", 42, 557});
  EXPECT_TRUE(answered) << answered.error().message;
  return answered ? answered->answers : Answers{};
}

TEST(Answers, CountWhoUsesLittleOfWhatItHolds) {
  Trace trace{"t", {}};
  add(trace, 0, 1, 1, 200, {});
  add(trace, 0, 1, 1, 500, {100, 0, 0, ""});
  add(trace, 0, 1, 1, 1000, {});
  const Answers a = answers_on(cluster_of(test::hgx(12), 1), trace);
  EXPECT_EQ(a.whole.jobs, 3);
  EXPECT_EQ(a.whole.little, 2);
  EXPECT_DOUBLE_EQ(a.whole.held_h, 3'000 / 3600.0);
  EXPECT_DOUBLE_EQ(a.whole.used_h, 1'300 / 3600.0);
  EXPECT_DOUBLE_EQ(a.whole.little_wasted_h, 1'700 / 3600.0);
  // As asked the second one holds 500 and uses 100 of it.
  EXPECT_EQ(a.asked.little, 1);
  EXPECT_DOUBLE_EQ(a.asked.held_h, 1'700 / 3600.0);
  EXPECT_DOUBLE_EQ(a.asked.little_wasted_h, 400 / 3600.0);
  EXPECT_THAT(sentences(a)[0], HasSubstr("2 of 3 jobs (66.7 %) use under 30 %"));
}

TEST(Answers, TellHowMuchSharingRaisesTheUse) {
  Trace trace{"t", {}};
  for (int i = 0; i < 40; ++i) add(trace, i, 1, 1, 250, {});
  const Answers a = answers_on(cluster_of(test::one_bridge(), 1), trace);
  EXPECT_NEAR(a.asked_use.used, a.asked_use.held, 0.1);
  EXPECT_NEAR(a.whole_use.used, a.whole_use.held / 4, 0.1);
  // Twelve at once instead of three: 4 rounds instead of 14.
  EXPECT_NEAR(static_cast<double>(a.asked_use.took_s), 4'000, 50);
  EXPECT_NEAR(static_cast<double>(a.whole_use.took_s), 14'000, 50);
  EXPECT_LT(a.asked_use.mean_wait_s, a.whole_use.mean_wait_s / 3);
}

TEST(Answers, ShortenJobsOnACubeMeshAndUnderPcieSwitches) {
  for (const model::NodeTopology& node : {test::dgx1_v100(), test::pcie_tree()}) {
    const Answers a = answers_on(cluster_of(node, 2), training(1));
    EXPECT_EQ(a.in_node.jobs, 200);
    EXPECT_GT(a.in_node.shorter_percent(), 5);
    EXPECT_GT(a.most_shorter_percent, 10);
    EXPECT_THAT(a.why_no_gain, IsEmpty());
  }
}

TEST(Answers, ShortenJobsThatShareRails) {
  const Answers a = answers_on(cluster_of(test::railed(8), 8), training(4));
  EXPECT_EQ(a.between_nodes.jobs + a.in_node.jobs, 200);
  EXPECT_GT(a.between_nodes.jobs, 0);
  const double shorter = 1 - (a.between_nodes.by_links_s + a.in_node.by_links_s) /
                                 (a.between_nodes.at_random_s + a.in_node.at_random_s);
  EXPECT_GT(shorter, 0.05);
}

TEST(Answers, FindNoGainInsideAnHgxAndSayWhy) {
  const Answers a = answers_on(cluster_of(test::hgx(12), 2), training(1));
  EXPECT_EQ(a.in_node.jobs, 200);
  EXPECT_EQ(a.in_node.by_links_s, a.in_node.at_random_s);
  EXPECT_EQ(a.most_shorter_percent, 0);
  EXPECT_THAT(sentences(a)[2], HasSubstr("no gain: every two GPUs of a node have equal links"));
}

TEST(Answers, AssumeAnAllReduceWhereTheTraceTellsOfNone) {
  Trace trace{"t", {}};
  add(trace, 0, 2, 1, 1000, {});
  const Answers a = answers_on(cluster_of(test::dgx1_v100(), 1), trace);
  EXPECT_EQ(a.in_node.jobs, 1);
  EXPECT_THAT(a.assumptions, testing::ElementsAre(HasSubstr("557 MB a second")));
}

TEST(Answers, AreAlsoGivenWhereNothingIsDistributed) {
  Trace trace{"t", {}};
  add(trace, 0, 1, 1, 1000, {});
  const Answers a = answers_on(cluster_of(test::dgx1_v100(), 1), trace);
  EXPECT_THAT(sentences(a)[1], HasSubstr("No job asks a share"));
  EXPECT_THAT(sentences(a)[2], HasSubstr("No job of several GPUs"));
}

}  // namespace
}  // namespace aliquot::replay
