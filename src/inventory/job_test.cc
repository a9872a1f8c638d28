#include "inventory/job.h"

#include <gmock/gmock.h>

namespace aliquot::inventory {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Eight workers that are alike in all.
std::vector<JobWorker> alike() {
  std::vector<JobWorker> workers(8);
  for (unsigned i = 0; i < workers.size(); ++i) {
    JobWorker& worker = workers[i];
    worker.rank = i;
    worker.node = i < 4 ? "node-a" : "node-b";
    worker.gpu_index = i % 4;
    worker.model = "NVIDIA H100 80GB HBM3";
    worker.busy = 0.98;
    worker.sm_mhz = 1755;
    worker.sm_max_mhz = 1980;
    worker.clock_reasons = 0;
    worker.temperature_c = 61;
    worker.pcie_generation = 5;
    worker.pcie_width = 16;
    worker.nvlinks_up = 18;
    worker.gpu_cpus = i % 4 < 2 ? "0-31" : "32-63";
    worker.cpus = "0-63";
    worker.others = 0;
  }
  return workers;
}

std::vector<std::string> codes(const JobAnswer& answer) {
  std::vector<std::string> all;
  for (const JobFinding& one : answer.findings) all.emplace_back(one.finding.kind->code);
  return all;
}

TEST(Job, OfWorkersThatAreAlikeNoneStandsOut) {
  const JobAnswer answer = diagnose_job(alike());
  EXPECT_EQ(answer.slow, std::nullopt);
  EXPECT_THAT(answer.findings, IsEmpty());
  EXPECT_EQ(diagnose_job({}).slow, std::nullopt);
  EXPECT_EQ(diagnose_job({alike()[0]}).slow, std::nullopt) << "one has nobody to wait for";
}

TEST(Job, AWorkerSlowedByHeatIsNamedWithItsClockAndTemperature) {
  auto workers = alike();
  workers[5].sm_mhz = 1200;
  workers[5].clock_reasons = 0x40;  // hardware thermal slowdown
  workers[5].temperature_c = 88;
  const JobAnswer answer = diagnose_job(workers);
  EXPECT_EQ(answer.slow, 5u);
  EXPECT_NEAR(answer.factor, 1755.0 / 1200, 0.01);
  ASSERT_THAT(codes(answer), ElementsAre("JOB_CLOCKS_HEAT"));
  EXPECT_EQ(answer.findings[0].finding.subject, "rank 5 (node-b, GPU 1)");
  EXPECT_EQ(answer.findings[0].finding.evidence, "1200 MHz, others 1755 MHz, at 88 C");
}

TEST(Job, LowClocksAreToldApartByTheirReason) {
  auto workers = alike();
  workers[2].sm_mhz = 1400;
  workers[2].clock_reasons = 0x4;  // power cap
  EXPECT_THAT(codes(diagnose_job(workers)), ElementsAre("JOB_CLOCKS_POWER"));
  workers[2].clock_reasons = 0x2;  // application clocks
  EXPECT_THAT(codes(diagnose_job(workers)), ElementsAre("JOB_CLOCKS_LOW"));
}

TEST(Job, ClocksThatAreLowForAllAreNobodysFault) {
  auto workers = alike();
  for (JobWorker& worker : workers) worker.sm_mhz = 1000, worker.clock_reasons = 0x4;
  EXPECT_EQ(diagnose_job(workers).slow, std::nullopt);
}

TEST(Job, StepTimesSayWhoAndTheCausesWhy) {
  auto workers = alike();
  for (JobWorker& worker : workers) worker.step_s = 0.40;
  workers[6].step_s = 0.52;
  workers[6].pcie_width = 8;
  workers[1].sm_mhz = 1600;  // lower too, but its steps are not
  const JobAnswer answer = diagnose_job(workers);
  EXPECT_TRUE(answer.measured);
  EXPECT_EQ(answer.slow, 6u);
  EXPECT_NEAR(answer.factor, 1.3, 0.001);
  EXPECT_THAT(codes(answer), ElementsAre("JOB_PCIE_SLOW", "JOB_CLOCKS_LOW"));
}

TEST(Job, StepTimesThatAreEvenClearEveryWorker) {
  auto workers = alike();
  for (JobWorker& worker : workers) worker.step_s = 0.40;
  workers[1].sm_mhz = 1600;
  EXPECT_EQ(diagnose_job(workers).slow, std::nullopt);
}

TEST(Job, ASlowWorkerOfWhichNothingIsSeenIsNamedAllTheSame) {
  auto workers = alike();
  for (JobWorker& worker : workers) worker.step_s = 0.40;
  workers[3].step_s = 0.60;
  const JobAnswer answer = diagnose_job(workers);
  EXPECT_EQ(answer.slow, 3u);
  ASSERT_THAT(codes(answer), ElementsAre("JOB_SLOW"));
  EXPECT_THAT(answer.findings[0].finding.evidence, HasSubstr("150 %"));
}

TEST(Job, EachCauseHasItsCode) {
  const auto with = [](auto change) {
    auto workers = alike();
    change(workers[4]);
    const JobAnswer answer = diagnose_job(workers);
    EXPECT_TRUE(answer.findings.empty() || answer.findings[0].worker == 4);
    return codes(answer);
  };
  EXPECT_THAT(with([](JobWorker& w) { w.nvlinks_up = 12; }), ElementsAre("JOB_NVLINKS"));
  EXPECT_THAT(with([](JobWorker& w) { w.cpus = "32-63"; }), ElementsAre("JOB_NUMA_FAR"));
  EXPECT_THAT(with([](JobWorker& w) { w.others = 2; }), ElementsAre("JOB_CROWDED"));
  EXPECT_THAT(with([](JobWorker& w) { w.busy = 0.6; }), ElementsAre("JOB_STARVED"));
  EXPECT_THAT(with([](JobWorker& w) { w.model = "NVIDIA A100"; }), ElementsAre("JOB_GPU_MODEL"));
  EXPECT_THAT(with([](JobWorker& w) { w.pcie_generation = 4; }), ElementsAre("JOB_PCIE_SLOW"));
}

TEST(Job, SharesAndTheWaitForThemAreCompared) {
  auto workers = alike();
  for (JobWorker& worker : workers) worker.cores = 0.5, worker.waiting = 0.1;
  workers[7].cores = 0.25;
  workers[7].waiting = 0.55;
  const JobAnswer answer = diagnose_job(workers);
  EXPECT_EQ(answer.slow, 7u);
  EXPECT_THAT(codes(answer), testing::UnorderedElementsAre("JOB_SHARE", "JOB_WAITS"));
}

TEST(Job, WhatIsNotKnownIsNoCause) {
  auto workers = alike();
  workers[0] = JobWorker{};
  workers[0].pid = 77;
  EXPECT_THAT(diagnose_job(workers).findings, IsEmpty());
  EXPECT_EQ(worker_name(workers[0]), "process 77 (GPU 0)");
}

TEST(Job, AReportReadsBackAsItWasWritten) {
  JobReport report;
  report.simulated = true;
  report.workers = alike();
  report.workers[3].step_s = 0.5;
  const std::string text = job_report_text(report);
  const auto read = parse_job_report(text, "a.json");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(job_report_text(*read), text);
}

TEST(Job, AReportOfAnotherVersionOrWithUnknownKeysIsRefused) {
  JobReport report;
  report.version = 2;
  EXPECT_THAT(parse_job_report(job_report_text(report), "a.json").error().message,
              HasSubstr("a.json: version 2"));
  EXPECT_FALSE(parse_job_report(R"({"version":1,"simulated":false,"workers":[],"x":1})", "a.json"));
  EXPECT_FALSE(parse_job_report("[]", "a.json"));
}

}  // namespace
}  // namespace aliquot::inventory
