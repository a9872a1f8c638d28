// A trace in virtual time under one policy: jobs arrive, are placed by the scheduler that serves
// production, run for their time and leave.
//
// A job that does not fit waits; whenever something leaves, all that wait are tried again, first
// come first. Small jobs may so pass a large one for ever: nothing is held back for the head of the
// queue (planner.h of the scheduler does that; here the policy alone is measured). Within a second
// jobs leave before others arrive. A job of several pods starts as a gang: all of them or none.
//
// How long a job runs is its duration, or what the time model makes of it (pace.h).
//
// Time is the trace's, no clock is read: same input, same result. Pure; any thread, one run each.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/result.h"
#include "model/placement.h"
#include "replay/cluster.h"
#include "replay/pace.h"
#include "replay/trace.h"
#include "scheduler/rollout_tuning.h"

namespace aliquot::replay {

enum class Fate : std::uint8_t {
  kPlaced,   // at its arrival
  kDelayed,  // waited, then placed
  kWaiting,  // still waits when nothing leaves any more
  kRefused,  // no node could ever take it
};
std::string_view fate_name(Fate fate);

struct JobOutcome {
  Fate fate = Fate::kRefused;
  std::int64_t start_s = 0;  // all that follows: if it was placed
  std::int64_t end_s = 0;
  std::vector<model::Placement> placements;  // one a pod
  double held_gpu_s = 0;                     // GPU x seconds that nobody else could have
  double used_gpu_s = 0;                     // of those, what it used
  std::string reason;                        // what was in its way, unless placed at once
  bool ran() const { return fate == Fate::kPlaced || fate == Fate::kDelayed; }
};

inline constexpr std::uint8_t kNoGpu = 255;

struct Sample {
  std::int64_t time_s = 0;
  std::int64_t used_milli = 0;        // of all GPUs, each by the scarcer of compute and memory
  std::int64_t busy_milli = 0;        // of all GPUs, what the jobs make use of
  std::int64_t fragmented_milli = 0;  // FGD's F for the trace's own mix of jobs
  std::int64_t running = 0;
  std::int64_t waiting = 0;
  std::vector<std::uint8_t> node_percent;  // of its GPUs in use; kNoGpu where it has none
};

struct Timeline {
  std::string policy;
  std::int64_t total_milli = 0;
  std::int64_t first_arrival_s = 0;
  std::int64_t last_arrival_s = 0;
  std::int64_t end_s = 0;            // the last departure, or the last arrival
  std::vector<Sample> samples;       // evenly spaced, and the end
  std::vector<JobOutcome> outcomes;  // as Trace::jobs
  // Means over time from the first arrival to the last, exact; parts of total_milli.
  double mean_used = 0;
  double mean_busy = 0;
  double mean_fragmented = 0;
  double mean_waiting = 0;  // jobs
  double peak_used = 0;
};

struct TimelinePlan {
  std::string policy;
  std::uint64_t seed = 42;    // of the random policy
  std::size_t samples = 400;  // about as many
  TimeModel time = TimeModel::kAsListed;
  // Take whole GPUs at random among those idle on the node, instead of as the policy says: what a
  // device plugin without topology does.
  bool scatter = false;
  scheduler::RolloutTuning rollout;
};

// Jobs that are finished with, of all.
using Progress = std::function<void(std::size_t done, std::size_t all)>;

Result<Timeline> run_timeline(const Cluster& cluster, const Trace& trace, const TimelinePlan& plan,
                              const Progress& progress = {});

// Seconds between arrival and start, of the jobs that ran, in ascending order.
std::vector<std::int64_t> waits_of(const Trace& trace, const Timeline& timeline);

}  // namespace aliquot::replay
