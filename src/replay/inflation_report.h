// What is said of several policies under the inflation protocol (inflation.h), each with several
// seeds: CSV, JSON and one HTML page that loads nothing from elsewhere. Pure; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/json.h"
#include "replay/inflation.h"

namespace aliquot::replay {

struct InflationRuns {
  std::string policy;  // as people call it
  std::vector<std::uint64_t> seeds;
  std::vector<InflationResult> results;  // one a seed
};

struct InflationReport {
  std::string list;     // of the pods
  std::string cluster;  // in words
  std::vector<InflationRuns> runs;
};

// Over the seeds of one policy.
struct Spread {
  double mean = 0;
  double least = 0;
  double most = 0;
};
Spread allocated_at(const InflationRuns& runs, int arrived_percent);
Spread fragmented(const InflationRuns& runs);
Spread refused(const InflationRuns& runs);  // pods

// One line a policy, seed and percent arrived.
std::string inflation_csv(const InflationReport& report);
format::Json inflation_json(const InflationReport& report);  // docs/formats/report.md
std::string inflation_html(const InflationReport& report);

}  // namespace aliquot::replay
