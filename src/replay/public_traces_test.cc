#include "replay/public_traces.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "common/files.h"
#include "replay/job_facts.h"
#include "support/shared_data.h"

namespace aliquot::replay {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::StartsWith;

constexpr model::Bytes kGiB = model::Bytes{1} << 30;
const std::string kPollux = "name,time,application,num_replicas,batch_size\n";
const std::string kOnline =
    "instance_sn,role,app_name,cpu_request,cpu_limit,gpu_request,gpu_limit,rdma_request,rdma_limit,"
    "memory_request,memory_limit,disk_request,disk_limit,max_instance_per_node,creation_time,"
    "scheduled_time,deletion_time\n";
const std::string kSpot = "gpu_model,gpu_capacity_num,cpu_num,node_name\n";

template <typename T>
std::string said_of(const Result<T>& result) {
  return result ? "accepted" : result.error().message;
}

std::string philly_line(const std::string& model, const std::string& rest) {
  return model + "\tpython3 main.py, %s\t--num_steps\t1\t" + rest + "\n";
}

TEST(PhillyTrace, TurnsStepsIntoTimeOnAV100) {
  const Result<Trace> trace =
      parse_philly_trace(philly_line("ResNet-50 (batch size 64)", "54580\t6.400000\t2") +
                             philly_line("LM (batch size 5)", "16712\t0.000000\t1"),
                         "vc.trace");
  ASSERT_TRUE(trace) << trace.error().message;
  ASSERT_EQ(trace->jobs.size(), 2u);
  const Job& first = trace->jobs[0];
  EXPECT_EQ(first.request.name, "vc-2");
  EXPECT_EQ(first.arrival_s, 0);
  EXPECT_EQ(first.duration_s, 100);
  EXPECT_EQ(first.work, (Work{735, 0, 0, "V100"}));
  const Job& second = trace->jobs[1];
  EXPECT_EQ(second.arrival_s, 6);
  EXPECT_EQ(second.duration_s, 10'000);
  EXPECT_EQ(second.gpus(), 2);
  // 102 MB for each of 5.458 steps a second.
  EXPECT_EQ(second.work.all_reduce_mb_s, 557);
}

TEST(PhillyTrace, CutsJobsOfMoreGpusThanANodeHasIntoEqualPods) {
  const Result<Trace> trace = parse_philly_trace(
      philly_line("A3C", "10\t0\t32") + philly_line("A3C", "10\t0\t12"), "vc.trace");
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_EQ(trace->jobs[0].pods, 4);
  EXPECT_EQ(trace->jobs[0].gpus_per_pod(), 8);
  EXPECT_EQ(trace->jobs[1].pods, 2);
  EXPECT_EQ(trace->jobs[1].gpus_per_pod(), 6);
}

TEST(PhillyTrace, SaysWhereAFaultIs) {
  const auto said = [](const std::string& line) {
    return said_of(parse_philly_trace(philly_line("A3C", "10\t0\t1") + line, "vc.trace"));
  };
  EXPECT_THAT(said(philly_line("ResNet-18", "10\t0\t1")),
              StartsWith("vc.trace:2:1: model: 'ResNet-18' is not known; there are ResNet-18 ("));
  EXPECT_EQ(said(philly_line("A3C", "x\t0\t1")), "vc.trace:2:39: steps: 'x' is not a whole number");
  EXPECT_EQ(said(philly_line("A3C", "1\t-2\t1")),
            "vc.trace:2:41: arrival_s: '-2' is not within 0 to 10000000000");
  EXPECT_EQ(said(philly_line("A3C", "1\tnan\t1")),
            "vc.trace:2:41: arrival_s: 'nan' is not within "
            "0 to 10000000000");
  EXPECT_EQ(said(philly_line("A3C", "1\t0\t0")), "vc.trace:2:43: scale_factor: must be at least 1");
  EXPECT_THAT(said(philly_line("A3C", "1000000000000\t0\t1")), HasSubstr("longer than 10^10"));
  EXPECT_THAT(said("A3C\t1\n"), HasSubstr("vc.trace:2:6: 2 fields"));
}

TEST(PolluxTrace, TurnsSamplesIntoTimeOnAT4) {
  const Result<Trace> trace =
      parse_pollux_trace(kPollux + "cifar10-0,107,cifar10,8,2048\nncf-1,9,ncf,1,256\n", "w.csv");
  ASSERT_TRUE(trace) << trace.error().message;
  const Job& job = trace->jobs[1];
  EXPECT_EQ(job.request.name, "cifar10-0");
  EXPECT_EQ(job.arrival_s, 107);
  // 5 M samples, 2048 a step; a step of 256 a GPU takes 0.0215 + 256 x 0.000665 s.
  EXPECT_EQ(job.duration_s, 468);
  EXPECT_EQ(job.gpus(), 8);
  EXPECT_EQ(job.work, (Work{0, 235, 0, "T4"}));
  EXPECT_EQ(trace->jobs[0].work.all_reduce_mb_s, 0);
}

TEST(PolluxTrace, SaysWhereAFaultIs) {
  const auto said = [](const std::string& lines) {
    return said_of(parse_pollux_trace(kPollux + lines, "w.csv"));
  };
  EXPECT_THAT(said("a,1,vgg,1,8\n"), StartsWith("w.csv:2:5: application: 'vgg' is not known"));
  EXPECT_EQ(said("a,1,ncf,0,8\n"), "w.csv:2:9: num_replicas: must be at least 1");
  EXPECT_EQ(said("a,1,ncf,4,2\n"), "w.csv:2:11: batch_size: must be at least num_replicas");
  EXPECT_EQ(said("a,1,ncf,1,2\na,1,ncf,1,2\n"), "w.csv:3:1: name: 'a' is there already");
  EXPECT_EQ(said_of(parse_pollux_trace("name,time,app\n", "w.csv")),
            "w.csv:1:11: expected column 'application'");
}

TEST(OnlineTrace, ReadsInstancesAndFillsInTheTimesTheyLack) {
  const std::string amounts = ",25,25,120.0,120.0,640.0,800.0,8,";
  const Result<Trace> trace = parse_online_trace(
      kOnline + "i0,HN,app,12,12,1,1" + amounts + ",,\n" + "i1,CN,app,64,64,0,0" + amounts +
          "100.0,130.0,500.2\n" + "i2,HN,app,12,12,1,1" + amounts + "200.0,210.0,\n",
      "d.csv");
  ASSERT_TRUE(trace) << trace.error().message;
  ASSERT_EQ(trace->jobs.size(), 3u);
  EXPECT_EQ(trace->jobs[0].arrival_s, 100);
  EXPECT_EQ(trace->jobs[0].duration_s, 400);
  EXPECT_EQ(trace->jobs[0].gpus(), 1);
  EXPECT_EQ(trace->jobs[0].request.containers[0].memory_bytes, 120 * kGiB);
  EXPECT_EQ(trace->jobs[1].duration_s, 370);
  EXPECT_EQ(trace->jobs[1].gpus(), 0);
  EXPECT_EQ(trace->jobs[1].request.containers[0].cpu_milli, 64'000);
  EXPECT_EQ(trace->jobs[2].duration_s, 290);
  EXPECT_THAT(trace->assumptions, testing::SizeIs(2));
}

TEST(OnlineTrace, SaysWhereAFaultIs) {
  const auto said = [](const std::string& line) {
    return said_of(parse_online_trace(kOnline + line + "\n", "d.csv"));
  };
  const std::string amounts = ",25,25,120.0,120.0,640.0,800.0,8,";
  EXPECT_EQ(said("i,XX,app,1,1,0,0" + amounts + ",,"), "d.csv:2:3: role: expected CN or HN");
  EXPECT_EQ(said("i,CN,app,1,1,0,0" + amounts + "9,5,"),
            "d.csv:2:52: scheduled_time: before creation_time");
  EXPECT_EQ(said("i,CN,app,1,1,0,0" + amounts + ",5,"),
            "d.csv:2:50: creation_time: missing where scheduled_time is given");
  EXPECT_EQ(said("i,CN,app,1,1,0,0" + amounts + "1,5,4"),
            "d.csv:2:54: deletion_time: before it was scheduled");
  EXPECT_EQ(said("i,CN,app,1,1,0,0,25,25,12O,1,1,1,8,,,"),
            "d.csv:2:24: memory_request: '12O' is not a number");
}

TEST(SpotNodes, ReadsTheMixAndSaysWhereAFaultIs) {
  const auto nodes = parse_spot_nodes(kSpot + "A100-SXM4-80GB,8,128,3\n,0,64,4\n", "n.csv");
  ASSERT_TRUE(nodes) << nodes.error().message;
  EXPECT_EQ((*nodes)[0].name, "node-3");
  EXPECT_EQ((*nodes)[0].gpu_count, 8);
  EXPECT_EQ((*nodes)[0].gpu.name, "A100-SXM4-80GB");
  EXPECT_EQ((*nodes)[0].cpu_milli, 128'000);
  EXPECT_EQ(said_of(parse_spot_nodes(kSpot + "A10,17,1,x\n", "n.csv")),
            "n.csv:2:5: gpu_capacity_num: '17' is not within 0 to 16");
  EXPECT_EQ(said_of(parse_spot_nodes(kSpot + ",1,1,x\n", "n.csv")),
            "n.csv:2:1: gpu_model: must be given exactly where gpu_capacity_num is not 0");
}

TEST(JobFacts, AreWholeSensibleFigures) {
  for (const PhillyModel& model : philly_models()) {
    EXPECT_GT(model.steps_per_s, 0) << model.name;
    EXPECT_GE(model.used_milli, 500) << model.name;
    EXPECT_LE(model.used_milli, 1000) << model.name;
  }
  for (const PolluxApp& app : pollux_apps()) EXPECT_GT(app.samples * app.step_s, 0) << app.name;
}

// All that was collected, where it is at hand.
TEST(PublicTraces, ReadEveryFileThatWasCollected) {
  const auto data = test::shared_data();
  if (!data) GTEST_SKIP() << "no shared data";
  std::size_t files = 0;
  std::size_t jobs = 0;
  for (const char* folder : {"gavel_msr_philly", "pollux_osdi21/workloads",
                             "pollux_osdi21/workloads-realistic", "alibaba_2025_dlrm"})
    for (const fs::directory_entry& file : fs::directory_iterator(*data / "traces" / folder)) {
      const Result<Trace> trace = read_trace(file.path());
      ASSERT_TRUE(trace) << trace.error().message;
      ++files;
      jobs += trace->jobs.size();
    }
  EXPECT_EQ(files, 15u + 16u + 1u);
  EXPECT_EQ(jobs, 15'264u + 16 * 160u + 23'871u);
  const auto nodes =
      parse_spot_nodes(*read_file(*data / "traces/alibaba_2026_spot/node_info_df.csv"), "n.csv");
  ASSERT_TRUE(nodes) << nodes.error().message;
  int gpus = 0;
  for (const model::NodeSpec& node : *nodes) gpus += node.gpu_count;
  EXPECT_EQ(gpus, 10'412);
}

}  // namespace
}  // namespace aliquot::replay
