#include "replay/pace.h"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <vector>

#include "replay/gpu_speed.h"
#include "support/topologies.h"

namespace aliquot::replay {
namespace {

using test::dgx1_v100;
using test::hgx;

// Nodes of one shape, and jobs that the test puts on them by hand.
class PaceOfJobs : public testing::Test {
 protected:
  void use(const model::NodeTopology& node, int nodes, const std::string& gpu = "V100") {
    cluster_.topologies["shape"] = node;
    for (int i = 0; i < nodes; ++i) {
      model::NodeSpec spec;
      spec.gpu_count = static_cast<int>(node.gpu_count());
      spec.gpu.name = gpu;
      spec.topology = "shape";
      cluster_.nodes.push_back(spec);
    }
  }
  // Call before pace().
  std::size_t job(const Work& work, std::int64_t duration_s = 100) {
    trace_.jobs.emplace_back();
    trace_.jobs.back().work = work;
    trace_.jobs.back().duration_s = duration_s;
    return trace_.jobs.size() - 1;
  }
  Pace& pace() {
    if (!pace_) pace_.emplace(cluster_, trace_, TimeModel::kModelled);
    return *pace_;
  }
  static model::Placement on(int node, const std::vector<int>& gpus, int milli = 1000) {
    model::Placement placement;
    placement.node = node;
    for (const int gpu : gpus)
      placement.gpus.push_back({gpu, 0, 0, milli == 1000 ? 0 : milli, milli == 1000, 0});
    return placement;
  }
  void start(std::size_t id, const std::vector<model::Placement>& placements) {
    touched_.clear();
    pace().start(id, placements, touched_);
  }

  Cluster cluster_;
  Trace trace_;
  std::optional<Pace> pace_;
  std::vector<std::size_t> touched_;
};

TEST_F(PaceOfJobs, IsOneWhereNothingIsSharedOrSent) {
  use(dgx1_v100(), 1);
  const std::size_t a = job({});
  start(a, {on(0, {0, 3})});
  EXPECT_DOUBLE_EQ(pace().speed(a), 1.0);
  EXPECT_DOUBLE_EQ(pace().used_milli(a), 1000.0);
}

TEST_F(PaceOfJobs, ConvertsBetweenGpuModels) {
  use(dgx1_v100(), 1, "A100-SXM4-80GB");
  const std::size_t a = job({500, 0, 0, "V100"});
  const std::size_t unknown = job({0, 0, 0, "G2"});
  start(a, {on(0, {0})});
  start(unknown, {on(0, {1})});
  const double ratio = std::sqrt(312.0 * 2039 / (125.0 * 900));
  EXPECT_DOUBLE_EQ(pace().speed(a), ratio);
  EXPECT_DOUBLE_EQ(pace().used_milli(a), 500 / ratio);
  EXPECT_DOUBLE_EQ(pace().speed(unknown), 1.0);
}

TEST_F(PaceOfJobs, LeavesNeighboursAloneWhileTheirUseFitsTheGpu) {
  use(dgx1_v100(), 1);
  const std::size_t a = job({300, 0, 0, ""});
  const std::size_t b = job({700, 0, 0, ""});
  start(a, {on(0, {0}, 300)});
  start(b, {on(0, {0}, 600)});
  EXPECT_DOUBLE_EQ(pace().speed(a), 1.0);
  EXPECT_DOUBLE_EQ(pace().speed(b), 1.0);
}

TEST_F(PaceOfJobs, GivesGuaranteesFirstAndTheRestByWeight) {
  use(dgx1_v100(), 1);
  // Guaranteed 300 and 500; both would use 900: 200 are left, shared 3 to 5.
  const std::size_t a = job({900, 0, 0, ""});
  const std::size_t b = job({900, 0, 0, ""});
  start(a, {on(0, {0}, 300)});
  EXPECT_DOUBLE_EQ(pace().speed(a), 1.0);
  start(b, {on(0, {0}, 500)});
  EXPECT_EQ(touched_, (std::vector<std::size_t>{a, b}));
  EXPECT_DOUBLE_EQ(pace().speed(a), 375.0 / 900);
  EXPECT_DOUBLE_EQ(pace().speed(b), 625.0 / 900);
  touched_.clear();
  pace().end(b, touched_);
  EXPECT_EQ(touched_, (std::vector<std::size_t>{a}));
  EXPECT_DOUBLE_EQ(pace().speed(a), 1.0);
}

TEST_F(PaceOfJobs, AddsAnAllReduceOverTheChosenLinks) {
  use(dgx1_v100(), 1);
  const Work work{0, 10'000, 0, ""};
  const std::size_t two_links = job(work);
  const std::size_t no_link = job(work);
  // Two GPUs send the bytes once: 10 GB over 50 GB/s. GPU 1 and 4 have no NVLink; the path between
  // the sockets is 6 GB/s.
  start(two_links, {on(0, {0, 3})});
  EXPECT_DOUBLE_EQ(pace().speed(two_links), 1 / 1.2);
  start(no_link, {on(0, {1, 4})});
  EXPECT_DOUBLE_EQ(pace().speed(no_link), 1 / (1 + 10.0 / 6));
}

TEST_F(PaceOfJobs, IsTheSameForAnyPairBehindAnNvswitch) {
  use(hgx(12), 1);
  const Work work{0, 30'000, 0, ""};
  const std::size_t a = job(work);
  const std::size_t b = job(work);
  start(a, {on(0, {0, 1})});
  start(b, {on(0, {2, 7})});
  EXPECT_DOUBLE_EQ(pace().speed(a), 1 / 1.1);
  EXPECT_DOUBLE_EQ(pace().speed(b), pace().speed(a));
}

TEST_F(PaceOfJobs, SharesAPortUpwardsWithItsNeighboursMeanRate) {
  use(test::pcie_tree(), 1);
  // 0,1 and 2,3 lie under a switch each. Alone, {0,2} has 10 GB/s: 1 + 10/10 s, so it sends 5 GB/s
  // in the mean; of the port's 12 GB/s that leaves {1,3} 7.
  const Work work{0, 10'000, 0, ""};
  const std::size_t a = job(work);
  const std::size_t b = job(work);
  start(a, {on(0, {0, 2})});
  EXPECT_DOUBLE_EQ(pace().speed(a), 0.5);
  start(b, {on(0, {1, 3})});
  EXPECT_NEAR(pace().speed(b), 1 / (1 + 10.0 / 7), 1e-9);
  EXPECT_NEAR(pace().speed(a), pace().speed(b), 1e-9);
}

TEST_F(PaceOfJobs, ReadsOverTheSameWiresWhileItComputes) {
  use(test::pcie_tree(), 1);
  const std::size_t hidden = job({0, 0, 5'000, ""});
  const std::size_t bound = job({0, 0, 24'000, ""});
  start(hidden, {on(0, {0})});
  EXPECT_DOUBLE_EQ(pace().speed(hidden), 1.0);
  // Alone it would read 12 GB/s, the port's rate; its neighbour under the switch takes 5 of those.
  start(bound, {on(0, {1})});
  EXPECT_NEAR(pace().speed(bound), 7.0 / 24, 1e-9);
}

TEST_F(PaceOfJobs, LeavesANodeByRails) {
  use(test::railed(4), 4);
  for (int i = 0; i < 4; ++i)
    cluster_.nodes[static_cast<std::size_t>(i)].domains = {i < 3 ? "leaf-0" : "leaf-1"};
  const Work work{0, 12'000, 0, ""};
  const std::size_t same = job(work);
  const std::size_t crossed = job(work);
  const std::size_t far = job(work);
  // Two GPUs: the bytes once. A rail is 12 GB/s; off its rail or its leaf switch half of that.
  start(same, {on(0, {0}), on(1, {0})});
  EXPECT_DOUBLE_EQ(pace().speed(same), 0.5);
  start(crossed, {on(1, {1}), on(2, {2})});
  EXPECT_DOUBLE_EQ(pace().speed(crossed), 1 / 3.0);
  start(far, {on(2, {3}), on(3, {3})});
  EXPECT_DOUBLE_EQ(pace().speed(far), 1 / 3.0);
}

TEST_F(PaceOfJobs, PutsAllPodsOnANodeIntoOneRing) {
  use(dgx1_v100(), 1);
  const Work work{0, 10'000, 0, ""};
  const std::size_t two_links = job(work);
  const std::size_t no_link = job(work);
  start(two_links, {on(0, {0}), on(0, {3})});
  EXPECT_DOUBLE_EQ(pace().speed(two_links), 1 / 1.2);
  start(no_link, {on(0, {1}), on(0, {4})});
  EXPECT_DOUBLE_EQ(pace().speed(no_link), 1 / (1 + 10.0 / 6));
}

TEST_F(PaceOfJobs, LeavesANodeByTheRailsOfAllItsPodsThere) {
  use(test::railed(4), 2);
  // Four GPUs: 1.5 times the bytes, over two rails of 12 GB/s.
  const std::size_t four = job({0, 16'000, 0, ""});
  start(four, {on(0, {0}), on(0, {1}), on(1, {0}), on(1, {1})});
  EXPECT_DOUBLE_EQ(pace().speed(four), 0.5);
}

TEST(PaceAsListed, TakesASecondForASecondWhateverHappens) {
  Cluster cluster;
  cluster.nodes.resize(1);
  cluster.nodes[0].gpu.name = "A100";
  Trace trace;
  trace.jobs.resize(2);
  for (Job& job : trace.jobs) job.work = {1000, 1'000'000, 0, "T4"};
  Pace pace(cluster, trace, TimeModel::kAsListed);
  std::vector<std::size_t> touched;
  model::Placement placement;
  placement.node = 0;
  placement.gpus = {{0, 0, 0, 500, false, 0}};
  for (std::size_t id = 0; id < 2; ++id) {
    pace.start(id, std::vector{placement}, touched);
    EXPECT_DOUBLE_EQ(pace.speed(id), 1.0);
  }
}

TEST(GpuSpeed, ComparesExactNamesOnly) {
  EXPECT_FALSE(gpu_speed("A1"));
  EXPECT_FALSE(gpu_speed("G2"));
  EXPECT_DOUBLE_EQ(speed_ratio("V100", "V100M32"), 1.0);
  // Within what Gavel measured from model to model.
  EXPECT_NEAR(speed_ratio("V100", "P100"), 2.69, 0.01);
}

}  // namespace
}  // namespace aliquot::replay
