// The slow worker of a distributed job, and why: workers compared with one another.
//
// A job that works in step is as fast as its slowest worker; the others wait in their collectives,
// where a GPU looks busy. So no worker is judged by itself: what one has less of than the median of
// all is a cause, and how much less tells how far it can hold the job back. Step times, where the
// job's own log gives them, say who is slow; the causes then say why. Leaves to others: the samples
// (job_look.h, or written by hand: docs/formats/job_report.md). Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"
#include "inventory/doctor.h"

namespace aliquot::inventory {

// One process on one GPU. What is not known is nullopt or empty, and no cause.
struct JobWorker {
  std::optional<unsigned> rank;
  std::string node;
  std::int64_t pid = 0;
  unsigned gpu_index = 0;
  std::string model;
  std::optional<double> step_s;  // of one step, without the wait for others
  std::optional<double> busy;    // part of the time in which a kernel ran, 0 to 1
  std::optional<unsigned> sm_mhz, sm_max_mhz;
  std::optional<std::uint64_t> clock_reasons;  // seen in any sample; NVML's bits
  std::optional<unsigned> temperature_c;
  std::optional<unsigned> pcie_generation, pcie_width;
  std::optional<unsigned> nvlinks_up;
  std::string gpu_cpus, cpus;      // Linux lists: nearest to the GPU; on which the process may run
  std::optional<unsigned> others;  // other processes on its GPU
  std::optional<double> cores;     // guaranteed part of the GPU's time, 0 to 1
  std::optional<double> waiting;   // part of the time in which its launches waited for their turn
};

struct JobReport {
  std::int64_t version = 1;
  bool simulated = false;
  std::vector<JobWorker> workers;
};

std::string job_report_text(const JobReport& report);
Result<JobReport> parse_job_report(std::string_view text, const std::string& where);

struct JobFinding {
  std::size_t worker = 0;  // in the list that was given
  Finding finding;         // its subject names the worker
  double factor = 1;       // how much slower this alone would make it; an estimate
};

struct JobAnswer {
  std::optional<std::size_t> slow;   // nullopt: none stands out
  double factor = 1;                 // against the median: by step times, else by the causes
  bool measured = false;             // by step times
  std::vector<JobFinding> findings;  // of the slow one first, the strongest first
};

JobAnswer diagnose_job(const std::vector<JobWorker>& workers);

// "rank 3 (node-a, GPU 5)".
std::string worker_name(const JobWorker& worker);

}  // namespace aliquot::inventory
