// What is said of one trace under several policies: a summary, CSV, JSON, and one HTML page that
// shows them side by side and loads nothing from elsewhere. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "format/json.h"
#include "replay/answers.h"
#include "replay/timeline.h"

namespace aliquot::replay {

// Borrows the trace and the cluster.
struct Report {
  const Trace& trace;
  const Cluster& cluster;
  std::vector<Timeline> timelines;
  TimeModel time = TimeModel::kAsListed;
  std::optional<Answers> answers{};  // the timelines are then those of answers.h
};

struct Summary {
  std::string policy;
  std::int64_t jobs = 0;
  std::int64_t placed = 0;  // at their arrival
  std::int64_t delayed = 0;
  std::int64_t waiting = 0;
  std::int64_t refused = 0;
  // Percent of the cluster's GPUs; means over time until the last arrival.
  double mean_used = 0;
  double mean_busy = 0;  // what the jobs make use of
  double peak_used = 0;
  double mean_fragmented = 0;
  // Seconds, of the jobs that ran.
  double mean_wait_s = 0;
  std::int64_t p95_wait_s = 0;
  std::int64_t longest_wait_s = 0;
  std::int64_t took_s = 0;  // from the first arrival to the end
};

Summary summary_of(const Trace& trace, const Timeline& timeline);

// "68 GPUs on 13 nodes: 24 A100, 16 H100, ..."
std::string cluster_text(const Cluster& cluster);

// One sentence each: what a reader must know before believing a figure.
std::vector<std::string> assumptions_of(const Report& report);

// One line a policy and sample.
std::string report_csv(const Report& report);
// docs/formats/report.md.
format::Json report_json(const Report& report);
std::string report_html(const Report& report);

}  // namespace aliquot::replay
