#include "cli/job_command.h"

#include <gmock/gmock.h>
#include <stdlib.h>

#include <filesystem>
#include <sstream>

#include "cli/program.h"
#include "common/files.h"
#include "format/json.h"
#include "inventory/job_look.h"

namespace aliquot::cli {
namespace {

using inventory::JobWorker;
using testing::HasSubstr;

std::vector<JobWorker> three() {
  std::vector<JobWorker> workers(3);
  for (unsigned i = 0; i < 3; ++i) {
    workers[i].rank = i;
    workers[i].node = "n" + std::to_string(i);
    workers[i].pid = 100 + i;
    workers[i].sm_mhz = i == 1 ? 600 : 1410;
  }
  return workers;
}

broker::LeaseRow lease_of(std::int32_t pid, std::uint32_t cores, std::uint64_t waiting_ns) {
  broker::LeaseRow lease;
  lease.rows = {{pid, 0, {}}};
  broker::UsageRow usage;
  usage.cores = cores;
  usage.waiting_ns = waiting_ns;
  lease.gpus = {usage};
  return lease;
}

TEST(JobCommand, StepTimesGoToTheirRanks) {
  auto workers = three();
  ASSERT_TRUE(add_steps({"0=0.4", "2=0.55"}, workers));
  EXPECT_EQ(workers[0].step_s, 0.4);
  EXPECT_EQ(workers[1].step_s, std::nullopt);
  EXPECT_EQ(workers[2].step_s, 0.55);
  for (const char* wrong : {"0", "=1", "a=1", "1=", "1=x", "1=-2", "1=0", "9=1"})
    EXPECT_FALSE(add_steps({wrong}, workers)) << wrong;
}

TEST(JobCommand, SharesComeFromTheLeaseThatAWorkerIsIn) {
  auto workers = three();
  add_shares({lease_of(101, 2500, 1'000'000'000)}, {lease_of(101, 2500, 3'000'000'000)}, 4,
             workers);
  EXPECT_EQ(workers[0].cores, std::nullopt);
  EXPECT_EQ(workers[1].cores, 0.25);
  EXPECT_EQ(workers[1].waiting, 0.5);
  add_shares({lease_of(102, 0, 0)}, {lease_of(102, 0, 90'000'000'000)}, 4, workers);
  EXPECT_EQ(workers[2].cores, std::nullopt) << "no guarantee";
  EXPECT_EQ(workers[2].waiting, 1) << "threads may wait at the same time";
}

TEST(JobCommand, TheSlowWorkerComesFirstWithCodeEvidenceAndRemedy) {
  const auto workers = three();
  const auto answer = inventory::diagnose_job(workers);
  const std::string text = job_text(workers, answer, true);
  EXPECT_THAT(text, testing::StartsWith("3 workers (simulated): rank 1 (n1, GPU 0) is slow"));
  EXPECT_THAT(text, HasSubstr("JOB_CLOCKS_LOW"));
  EXPECT_THAT(text, HasSubstr("remedy: "));
  const auto json = format::parse_json(job_json(workers, answer, true), "stdout");
  ASSERT_TRUE(json);
  EXPECT_EQ(*json->find("slow")->find("rank")->if_int(), 1);
  EXPECT_EQ(*json->find("slow")->find("node")->if_string(), "n1");
}

TEST(JobCommand, ReportsOfSeveralNodesAreComparedTogether) {
  std::string name = (std::filesystem::temp_directory_path() / "aliquot-job-XXXXXX").string();
  ASSERT_NE(mkdtemp(name.data()), nullptr);
  const std::filesystem::path directory = name;
  std::vector<std::string> words{"aliquot", "doctor", "--job"};
  for (const JobWorker& worker : three()) {
    const auto file = directory / (worker.node + ".json");
    ASSERT_TRUE(write_file_atomically(file, inventory::job_report_text({1, true, {worker}})));
    words.push_back(file.string());
  }
  std::ostringstream out, err;
  Invocation invocation{out, err, words};
  EXPECT_EQ(run_program(invocation), 1) << err.str();
  EXPECT_THAT(out.str(), HasSubstr("rank 1 (n1, GPU 0) is slow"));
  std::filesystem::remove_all(directory);
}

TEST(JobLook, ARankIsFoundInWhatLaunchersSet) {
  const auto of = [](std::string text) {
    std::ranges::replace(text, ' ', '\0');
    return inventory::rank_of(text);
  };
  EXPECT_EQ(of("PATH=/bin RANK=7 X=1"), 7u);
  EXPECT_EQ(of("OMPI_COMM_WORLD_RANK=3"), 3u);
  EXPECT_EQ(of("SLURM_PROCID=12 RANK=4"), 4u) << "torchrun's under Slurm";
  EXPECT_EQ(of("LOCAL_RANK=1 RANKS=2 RANK=x"), std::nullopt);
  EXPECT_EQ(of(""), std::nullopt);
}

TEST(JobLook, SamplesOfAGpuAreTakenTogether) {
  std::vector<inventory::NvmlState> samples(3);
  samples[0].gpu_percent = 100, samples[0].sm_mhz = 1400, samples[0].clock_reasons = 0;
  samples[1].gpu_percent = 50, samples[1].sm_mhz = 1200, samples[1].clock_reasons = 4;
  samples[2].gpu_percent = 0, samples[2].sm_mhz = 210, samples[2].clock_reasons = 1;  // idle
  samples[1].pcie_generation = 4, samples[2].pcie_generation = 1;
  inventory::NvmlGpu gpu;
  gpu.name = "NVIDIA A100";
  const JobWorker worker = inventory::worker_of(gpu, samples);
  EXPECT_EQ(worker.busy, 0.5);
  EXPECT_EQ(worker.sm_mhz, 1200u) << "not the idle clock";
  EXPECT_EQ(worker.clock_reasons, 5u);
  EXPECT_EQ(worker.pcie_generation, 4u) << "a sleeping link is no slow one";
}

}  // namespace
}  // namespace aliquot::cli
