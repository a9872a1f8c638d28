#include "replay/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "support/shared_data.h"

namespace aliquot::replay {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr model::Bytes kMiB = model::Bytes{1} << 20;
const std::string kHead =
    "name,arrival_s,duration_s,gpus,gpu_milli,gpu_memory_mib,cpu_milli,memory_mib,gpu_models\n";

const std::string kLongHead =
    kHead.substr(0, kHead.size() - 1) + ",pods,used_milli,all_reduce_mb_s,read_mb_s,duration_gpu\n";

// What is said of a trace whose second line this is.
std::string said_of(const std::string& line) {
  const Result<Trace> trace = parse_trace(kHead + line + "\n", "t.csv");
  return trace ? "accepted" : trace.error().message;
}

TEST(Trace, ReadsSharesWholeGpusAndJobsWithout) {
  const Result<Trace> trace = parse_trace(kHead +
                                              "a,5,60,1,250,1024,2000,512,\n"
                                              "b,5,60,4,1000,40960,0,0,H100|A100\n"
                                              "c,7,1,0,0,0,500,0,\n",
                                          "t.csv");
  ASSERT_TRUE(trace) << trace.error().message;
  ASSERT_EQ(trace->jobs.size(), 3u);
  const Job& share = trace->jobs[0];
  EXPECT_EQ(share.arrival_s, 5);
  EXPECT_EQ(share.duration_s, 60);
  EXPECT_EQ(share.request.containers[0].cpu_milli, 2000);
  EXPECT_EQ(share.request.containers[0].memory_bytes, 512 * kMiB);
  EXPECT_EQ(share.request.containers[0].gpu,
            (model::GpuAsk{model::GpuKind::kShare, 1, 250, 1024 * kMiB, 0, {}}));
  const model::Request& whole = trace->jobs[1].request;
  EXPECT_EQ(whole.containers[0].gpu, (model::GpuAsk{model::GpuKind::kWhole, 4, 0, 0, 0, {}}));
  EXPECT_EQ(whole.floor.memory_bytes, 40960 * kMiB);
  EXPECT_EQ(whole.gpu_models, (std::vector<std::string>{"A100", "H100"}));
  EXPECT_FALSE(trace->jobs[2].request.containers[0].gpu);
}

TEST(Trace, IsSortedByArrivalAndKeepsTheOrderOfOneSecond) {
  const Result<Trace> trace =
      parse_trace(kHead + "z,9,1,0,0,0,1,0,\ny,3,1,0,0,0,1,0,\nx,9,1,0,0,0,1,0,\n", "t.csv");
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_EQ(trace->jobs[0].request.name, "y");
  EXPECT_EQ(trace->jobs[1].request.name, "z");
  EXPECT_EQ(trace->jobs[2].request.name, "x");
}

TEST(Trace, CondensedArrivesSoonerAndRunsAsLong) {
  const Result<Trace> trace =
      parse_trace(kHead + "a,100,60,0,0,0,1,0,\nb,139,60,0,0,0,1,0,\n", "t.csv");
  ASSERT_TRUE(trace) << trace.error().message;
  const Trace dense = condensed(*trace, 10);
  EXPECT_EQ(dense.jobs[0].arrival_s, 100);
  EXPECT_EQ(dense.jobs[1].arrival_s, 103);
  EXPECT_EQ(dense.jobs[1].duration_s, 60);
}

TEST(Trace, PlacesEveryFaultByLineAndColumn) {
  EXPECT_EQ(said_of("a,x,60,0,0,0,1,0,"), "t.csv:2:3: arrival_s: 'x' is not a whole number");
  EXPECT_THAT(said_of("a,1,0,0,0,0,1,0,"), StartsWith("t.csv:2:5: duration_s: must be at least 1"));
  EXPECT_THAT(said_of("a,1,1,17,1000,0,1,0,"), StartsWith("t.csv:2:7: gpus: '17' is not within"));
  EXPECT_THAT(said_of("a,1,1,1,0,0,1,0,"), StartsWith("t.csv:2:9: gpu_milli: asks nothing"));
  EXPECT_THAT(said_of("a,1,1,0,5,0,1,0,"), StartsWith("t.csv:2:9: gpu_milli: must be 0"));
  EXPECT_THAT(said_of("a,1,1,0,0,5,1,0,"), StartsWith("t.csv:2:11: gpu_memory_mib: must be 0"));
  EXPECT_THAT(said_of("a,1,1,0,0,0,1,0,T4"), StartsWith("t.csv:2:17: gpu_models: must be empty"));
  EXPECT_THAT(said_of("a,1,1,1,5,0,1,0,T4|"), StartsWith("t.csv:2:17: gpu_models: write exact"));
  EXPECT_THAT(said_of(",1,1,0,0,0,1,0,"), StartsWith("t.csv:2:1: name: "));
  EXPECT_THAT(said_of("a,1,1,0,0,0,1,0"), HasSubstr("8 fields, the header has 9"));
  EXPECT_THAT(said_of("a,1,-1,0,0,0,1,0,"), StartsWith("t.csv:2:5: duration_s: '-1'"));
  EXPECT_THAT(said_of("a,1,1,0,0,0,1,0,\na,2,1,0,0,0,1,0,"),
              StartsWith("t.csv:3:1: name: 'a' is there already"));
}

TEST(Trace, ReadsWhatAJobDoesWithWhatItHolds) {
  const Result<Trace> trace =
      parse_trace(kLongHead + "a,0,60,4,1000,0,0,0,,2,850,600,40,A100\n", "t.csv");
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_EQ(trace->jobs[0].pods, 2);
  EXPECT_EQ(trace->jobs[0].gpus(), 8);
  EXPECT_EQ(trace->jobs[0].work, (Work{850, 600, 40, "A100"}));
  const auto said = [](const std::string& line) {
    return parse_trace(kLongHead + line + "\n", "t.csv").error().message;
  };
  EXPECT_EQ(said("a,0,60,4,1000,0,0,0,,0,0,0,0,"), "t.csv:2:22: pods: must be at least 1");
  EXPECT_EQ(said("a,0,60,0,0,0,1,0,,1,5,0,0,"),
            "t.csv:2:21: used_milli: must be 0 where gpus is 0");
  EXPECT_EQ(said("a,0,60,0,0,0,1,0,,1,0,0,5,"), "t.csv:2:25: read_mb_s: must be 0 where gpus is 0");
}

TEST(Trace, CutsPodsThatAreLargerThanAnyNode) {
  Result<Trace> trace =
      parse_trace(kLongHead +
                      "a,0,60,8,1000,0,800,0,,2,0,0,0,\nb,0,60,3,1000,0,0,0,,1,0,0,0,\n"
                      "c,0,60,5,500,0,0,0,,1,0,0,0,\n",
                  "t.csv");
  ASSERT_TRUE(trace) << trace.error().message;
  std::vector<model::NodeSpec> nodes(1);
  nodes[0].gpu_count = 4;
  const Trace cut = cut_to_nodes(*std::move(trace), nodes);
  EXPECT_EQ(cut.jobs[0].pods, 4);
  EXPECT_EQ(cut.jobs[0].gpus_per_pod(), 4);
  EXPECT_EQ(cut.jobs[0].request.containers[0].cpu_milli, 400);
  EXPECT_EQ(cut.jobs[1].pods, 1);
  EXPECT_EQ(cut.jobs[2].pods, 1) << "shares stay on one node";
  EXPECT_EQ(pods_of(7, 4), 7);
  EXPECT_EQ(pods_of(48, 8), 6);
  EXPECT_EQ(pods_of(1, 8), 1);
}

TEST(Trace, WantsItsHeaderToTheLetter) {
  EXPECT_THAT(parse_trace("", "t.csv").error().message, StartsWith("t.csv:1:1: empty"));
  EXPECT_THAT(parse_trace("name,arrival\n", "t.csv").error().message,
              StartsWith("t.csv:1:6: expected column 'arrival_s'"));
  EXPECT_THAT(parse_trace(kHead.substr(0, kHead.size() - 1) + ",more\n", "t.csv").error().message,
              StartsWith("t.csv:1:89: expected column 'pods'"));
  EXPECT_THAT(
      parse_trace(kLongHead.substr(0, kLongHead.size() - 1) + ",more\n", "t.csv").error().message,
      HasSubstr("a column too many"));
}

TEST(Trace, CountsAShareOfMemoryByTheLargestGpuItMayHave) {
  const Result<Trace> trace = parse_trace(
      kHead + "a,1,1,2,100,1000,7,0,\nb,1,1,1,100,1000,7,0,T4\nc,1,1,1,900,1000,7,0,T4\n", "t");
  ASSERT_TRUE(trace) << trace.error().message;
  std::vector<model::NodeSpec> nodes(2);
  nodes[0].gpu = {"A100", 80, 4000 * kMiB, 0};
  nodes[1].gpu = {"T4", 75, 1500 * kMiB, 0};
  const scheduler::WorkShape any = work_shape_of(trace->jobs[0].request, nodes);
  EXPECT_EQ(any.gpus, 2);
  EXPECT_EQ(any.gpu_milli, 250);
  EXPECT_EQ(any.cpu_milli, 7);
  EXPECT_EQ(work_shape_of(trace->jobs[1].request, nodes).gpu_milli, 667);
  EXPECT_EQ(work_shape_of(trace->jobs[2].request, nodes).gpu_milli, 900);
}

TEST(Trace, OfTheRepositoryIsReadWhole) {
  const std::string examples = std::string(ALIQUOT_SOURCE_DIR) + "/examples/";
  const Result<Trace> trace = read_trace(examples + "trace.csv");
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_EQ(trace->jobs.size(), 400u);
  const auto nodes = read_openb_nodes(examples + "cluster.csv");
  ASSERT_TRUE(nodes) << nodes.error().message;
  EXPECT_EQ(nodes->size(), 13u);
  EXPECT_EQ((*nodes)[0].gpu.memory_bytes, 81920 * kMiB);
}

TEST(Trace, ReadsTheOpenbListsThatCarryTimes) {
  const auto data = test::shared_data();
  if (!data) GTEST_SKIP() << "no shared data";
  const auto lists = *data / "traces/openb";
  const Result<Trace> trace = read_trace(lists / "openb_pod_list_default.csv");
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_EQ(trace->jobs.size(), 8152u);
  for (const Job& job : trace->jobs) EXPECT_GE(job.duration_s, 1);
  const Result<Trace> without = read_trace(lists / "openb_pod_list_multigpu20.csv");
  ASSERT_FALSE(without);
  EXPECT_THAT(without.error().message, HasSubstr("has no times"));
}

}  // namespace
}  // namespace aliquot::replay
