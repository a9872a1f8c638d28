#include "node/metrics.h"

#include <gmock/gmock.h>

#include <set>

namespace aliquot::node {
namespace {

using testing::HasSubstr;
using testing::Not;

NodeFigures two_gpus() {
  NodeFigures node;
  node.node = "node-a";
  node.version = "0.1.0";
  node.driver = "580.65.06";
  node.simulated = true;
  node.registered = true;
  for (unsigned i = 0; i < 2; ++i) {
    GpuFigures gpu;
    gpu.index = i;
    gpu.uuid = "GPU-" + std::to_string(i);
    gpu.model = "NVIDIA A100";
    gpu.age_s = 2;
    gpu.memory_total_bytes = 1000;
    gpu.memory_used_bytes = 300;
    gpu.utilization = 0.25;
    gpu.power_w = 60;
    node.gpus.push_back(gpu);
  }
  ShareFigures share;
  share.name_space = "ml";
  share.pod = "train";
  share.container = "main";
  share.uuid = "GPU-0";
  share.memory_limit_bytes = 400;
  share.memory_used_bytes = 100;
  share.cores = 0.3;
  share.utilization = 0.2;
  share.busy_s = 12.5;
  share.refusals = 2;
  node.shares.push_back(share);
  node.gpus[0].memory_granted_bytes = 400;
  return node;
}

std::string text_of(const NodeFigures& node, const MetricSets& sets = {}) {
  return expose(node_metrics(node, sets), TextFormat::kPrometheus);
}

TEST(Metrics, TheNamesInUsersDashboardsAreKeptAsTheyAre) {
  const std::string text = text_of(two_gpus());
  const std::string labels =
      R"({namespace="ml",pod="train",container="main",gpu="0",uuid="GPU-0"})";
  EXPECT_THAT(text, HasSubstr("\ncontainer_gpu_utilization" + labels + " 20\n"));
  EXPECT_THAT(text, HasSubstr("\ncontainer_gpu_memory_usage" + labels + " 100\n"));
  EXPECT_THAT(text, HasSubstr("\ncontainer_gpu_memory_limit" + labels + " 400\n"));
  EXPECT_THAT(text, HasSubstr("\ncnb_gpu_memory_used_bytes 600\n"));
  EXPECT_THAT(text, HasSubstr("\ncnb_gpu_memory_total_bytes 2000\n"));
}

TEST(Metrics, TwinsFollowTheConventions) {
  const std::string text = text_of(two_gpus());
  EXPECT_THAT(text, HasSubstr("aliquot_container_gpu_utilization_ratio{"));
  EXPECT_THAT(text, HasSubstr("aliquot_container_gpu_busy_seconds_total{"));
  EXPECT_THAT(text, HasSubstr(R"(aliquot_node_info{node="node-a",version="0.1.0")"));
  EXPECT_THAT(text, HasSubstr(R"(simulated="true")"));
}

TEST(Metrics, EachFamilyIsNamedOnceAndEndsWithItsUnit) {
  std::set<std::string> names;
  for (const Family& family : node_metrics(two_gpus(), {.dcgm = true, .hami = true})) {
    EXPECT_TRUE(names.insert(family.name).second) << family.name;
    EXPECT_FALSE(family.help.empty()) << family.name;
    EXPECT_TRUE(family.unit.empty() || family.name.ends_with("_" + family.unit)) << family.name;
  }
}

TEST(Metrics, AGpuThatDoesNotAnswerShowsItsAgeAndNoOldValues) {
  NodeFigures node = two_gpus();
  GpuFigures& silent = node.gpus[1];
  silent.age_s = 95;
  silent.health = inventory::HealthState::kLost;
  silent.memory_total_bytes.reset();
  silent.memory_used_bytes.reset();
  silent.utilization.reset();
  silent.power_w.reset();
  const std::string text = text_of(node);
  EXPECT_THAT(text, HasSubstr(R"(aliquot_gpu_answer_age_seconds{gpu="1",uuid="GPU-1"} 95)"));
  EXPECT_THAT(text, HasSubstr(R"(aliquot_gpu_health{gpu="1",uuid="GPU-1",state="lost"} 1)"));
  EXPECT_THAT(text, HasSubstr(R"(aliquot_gpu_health{gpu="1",uuid="GPU-1",state="healthy"} 0)"));
  EXPECT_THAT(text, Not(HasSubstr(R"(aliquot_gpu_power_watts{gpu="1")")));
  EXPECT_THAT(text, HasSubstr(R"(aliquot_gpu_power_watts{gpu="0")"));
}

TEST(Metrics, AFinishedContainersSeriesAreGoneAtTheNextScrape) {
  NodeFigures node = two_gpus();
  node.shares.clear();
  EXPECT_THAT(text_of(node), Not(HasSubstr("train")));
}

TEST(Metrics, XidsCountByNumberAndClassWithTheLastTime) {
  NodeFigures node = two_gpus();
  node.gpus[0].xids[79] = {3, 1'700'000'000};
  node.gpus[0].xids[31] = {1, 1'600'000'000};
  const std::string text = text_of(node, {.dcgm = true, .hami = false});
  EXPECT_THAT(text, HasSubstr(R"(aliquot_gpu_xid_errors_total{gpu="0",uuid="GPU-0",xid="79",)"
                              R"(class="hardware"} 3)"));
  EXPECT_THAT(text, HasSubstr(R"(xid="31",class="application"} 1)"));
  EXPECT_THAT(text, HasSubstr(R"(aliquot_gpu_xid_last_timestamp_seconds{gpu="0",uuid="GPU-0",)"
                              R"(xid="79"} 1.7e+09)"));
  EXPECT_THAT(text,
              HasSubstr(R"(Hostname="node-a",container="main",namespace="ml",pod="train"} 79)"));
}

TEST(Metrics, OtherSystemsNamesComeOnlyWhenAskedAndInTheirUnits) {
  NodeFigures node = two_gpus();
  node.gpus[0].memory_used_bytes = 512ull << 20;
  node.gpus[0].memory_total_bytes = 1024ull << 20;
  EXPECT_THAT(text_of(node), Not(HasSubstr("DCGM")));
  EXPECT_THAT(text_of(node), Not(HasSubstr("hami")));
  const std::string text = text_of(node, {.dcgm = true, .hami = true});
  EXPECT_THAT(text, testing::ContainsRegex("DCGM_FI_DEV_FB_USED.gpu=\"0\"[^\n]* 512\n"));
  EXPECT_THAT(text, testing::ContainsRegex("DCGM_FI_DEV_FB_FREE.gpu=\"0\"[^\n]* 512\n"));
  EXPECT_THAT(text, testing::ContainsRegex("hami_container_device_utilization_ratio[^\n]* 20\n"));
}

TEST(Metrics, FragmentationIsWhatLiesInRemaindersBelowAQuarter) {
  std::vector<GpuFigures> gpus(2);
  for (GpuFigures& gpu : gpus) gpu.memory_total_bytes = 1000;
  EXPECT_EQ(memory_fragmentation(gpus), 0) << "an idle node";
  gpus[0].memory_granted_bytes = 800;
  EXPECT_DOUBLE_EQ(memory_fragmentation(gpus), 200.0 / 1200);
  gpus[0].memory_granted_bytes = 750;
  EXPECT_EQ(memory_fragmentation(gpus), 0) << "a quarter is no remainder";
  gpus[0].memory_granted_bytes = gpus[1].memory_granted_bytes = 1500;
  EXPECT_EQ(memory_fragmentation(gpus), 0) << "nothing is free, and overcommit is no debt";
  EXPECT_EQ(memory_fragmentation({}), 0);
}

}  // namespace
}  // namespace aliquot::node
