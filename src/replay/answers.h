// Answers: what a trace says to the three questions of whoever runs a GPU cluster.
//   1. How many jobs use under 30 % of what they hold, and what is wasted by that?
//   2. How much does sharing raise the use of GPUs against whole-GPU allocation?
//   3. How much shorter do distributed jobs run on GPUs chosen by their links than on any?
//
// The trace is replayed four times under the time model: as it asks, with every share made a whole
// GPU, by policy topology, and on nodes and GPUs taken at random. Only 3 compares policies.
//
// Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/result.h"
#include "replay/timeline.h"

namespace aliquot::replay {

// Of jobs that held GPUs and ended. Hours of one GPU.
struct UseOfHeld {
  std::int64_t jobs = 0;
  std::int64_t little = 0;  // jobs that used under 30 % of what they held
  double held_h = 0;
  double used_h = 0;
  double little_wasted_h = 0;  // held by those and not used
};

// Percent of all GPUs; means over time until the last arrival.
struct Utilisation {
  double held = 0;
  double used = 0;
  double mean_wait_s = 0;
  std::int64_t took_s = 0;  // until all was done
};

// Jobs of several GPUs that ran in both replays, in seconds of run time summed up.
struct LinkGain {
  std::int64_t jobs = 0;
  double by_links_s = 0;
  double at_random_s = 0;
  double shorter_percent() const;
};

struct Answers {
  std::string policy;  // of 1 and 2
  UseOfHeld whole;     // every job on whole GPUs
  UseOfHeld asked;
  bool any_share = false;  // without one, sharing changes nothing
  Utilisation whole_use;
  Utilisation asked_use;
  LinkGain in_node;  // jobs that both replays kept on one node
  LinkGain between_nodes;
  double median_shorter_percent = 0;  // of a job, over both kinds
  double most_shorter_percent = 0;
  std::string why_no_gain;  // inside a node, where there is none
  std::vector<std::string> assumptions;
};

struct QuestionPlan {
  std::string policy;
  std::uint64_t seed = 42;
  // 10^6 bytes a second of compute for jobs of several GPUs where the trace tells of none at all.
  std::int64_t all_reduce_mb_s = 557;  // ResNet-50, batches of 64, on a V100
};

inline constexpr std::size_t kAnswerRuns = 4;

struct Answered {
  Answers answers;
  std::vector<Timeline> timelines;  // the four, named for people
};

using NamedProgress = std::function<void(const std::string& run, std::size_t done, std::size_t of)>;

Result<Answered> answer_questions(const Cluster& cluster, const Trace& trace,
                                  const QuestionPlan& plan, const NamedProgress& progress = {});

// A paragraph for each question.
std::vector<std::string> sentences(const Answers& answers);

}  // namespace aliquot::replay
