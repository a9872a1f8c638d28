// `aliquot doctor --job`: the slow worker of a distributed job, and why.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "broker/requests.h"
#include "common/result.h"
#include "inventory/job.h"

namespace aliquot::cli {

struct JobOptions {
  std::vector<std::string> files;  // reports of nodes; empty: this node is looked at
  std::vector<std::string> steps;  // "RANK=SECONDS"
  double seconds = 5;
  bool report = false;  // only print what was seen here, to be compared elsewhere
  bool json = false;
  std::string sim;
};

// 1: a worker stands out. Written to `out`.
Result<int> examine_job(const JobOptions& options, std::ostream& out);

// ---- pure

// Puts each step time at its rank's workers.
Status add_steps(const std::vector<std::string>& steps, std::vector<inventory::JobWorker>& workers);
// What the broker knew of the workers' shares before and after `seconds`.
void add_shares(const std::vector<broker::LeaseRow>& before,
                const std::vector<broker::LeaseRow>& after, double seconds,
                std::vector<inventory::JobWorker>& workers);
std::string job_text(const std::vector<inventory::JobWorker>& workers,
                     const inventory::JobAnswer& answer, bool simulated);
std::string job_json(const std::vector<inventory::JobWorker>& workers,
                     const inventory::JobAnswer& answer, bool simulated);

}  // namespace aliquot::cli
