// Samples of this node's workers of a job: its processes on GPUs, for as long as asked.
//
// Asks NVML twice a second in a child process with a deadline, so that a driver that hangs costs an
// error and no more. Workers are the processes named, else those whose environment tells a rank
// (torchrun, MPI, Slurm, PMI), else all that use a GPU. Leaves to others: shares (cli). Waits for
// the samples; one thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/result.h"
#include "inventory/job.h"

namespace aliquot::inventory {

struct JobQuestion {
  std::filesystem::path libnvidia_ml;
  std::filesystem::path proc = "/proc";  // where processes are
  std::vector<std::int64_t> pids;        // empty: as above
  Nanoseconds duration = 5 * kSecond;
  std::string node;
};

Result<std::vector<JobWorker>> look_at_job(const JobQuestion& question);

// The rank that an environment tells ("NAME=VALUE" parted by zero bytes); nullopt: none.
std::optional<unsigned> rank_of(std::string_view environment);

// What the samples of one GPU say together: the mean of what varies, the least clock, every reason.
// Pure; `samples` is not empty.
JobWorker worker_of(const NvmlGpu& gpu, const std::vector<NvmlState>& samples);

}  // namespace aliquot::inventory
