#include "replay/answers.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <numeric>
#include <utility>

namespace aliquot::replay {
namespace {

constexpr double kLittle = 0.30;
constexpr double kNoGain = 0.05;  // percent, either way
constexpr double kHour = 3600;

bool is_distributed(const Job& job) { return job.gpus() > 1 && job.work.all_reduce_mb_s > 0; }

bool asks_share(const Job& job) {
  return std::ranges::any_of(job.request.containers, [](const model::Container& container) {
    return container.gpu && container.gpu->kind == model::GpuKind::kShare;
  });
}

// Every share becomes the whole of each GPU that it lies on; what the job uses stays.
Trace on_whole_gpus(Trace trace, const std::vector<model::NodeSpec>& nodes) {
  for (Job& job : trace.jobs)
    for (model::Container& container : job.request.containers) {
      if (!container.gpu || container.gpu->kind != model::GpuKind::kShare) continue;
      if (job.work.used_milli == 0)
        job.work.used_milli = work_shape_of(job.request, nodes).gpu_milli;
      job.request.floor.memory_bytes =
          std::max(job.request.floor.memory_bytes, container.gpu->memory_bytes);
      container.gpu = model::GpuAsk{model::GpuKind::kWhole, container.gpu->count, 0, 0, 0, {}};
    }
  return trace;
}

UseOfHeld use_of(const Timeline& timeline) {
  UseOfHeld use;
  for (const JobOutcome& outcome : timeline.outcomes) {
    if (!outcome.ran() || outcome.held_gpu_s <= 0) continue;
    ++use.jobs;
    use.held_h += outcome.held_gpu_s / kHour;
    use.used_h += outcome.used_gpu_s / kHour;
    if (outcome.used_gpu_s >= kLittle * outcome.held_gpu_s) continue;
    ++use.little;
    use.little_wasted_h += (outcome.held_gpu_s - outcome.used_gpu_s) / kHour;
  }
  return use;
}

Utilisation utilisation_of(const Trace& trace, const Timeline& timeline) {
  const std::vector<std::int64_t> waits = waits_of(trace, timeline);
  const double sum = std::accumulate(waits.begin(), waits.end(), 0.0);
  return {100 * timeline.mean_used, 100 * timeline.mean_busy,
          waits.empty() ? 0 : sum / static_cast<double>(waits.size()),
          timeline.end_s - timeline.first_arrival_s};
}

bool on_one_node(const JobOutcome& outcome) {
  return std::ranges::all_of(outcome.placements, [&](const model::Placement& placement) {
    return placement.node == outcome.placements[0].node;
  });
}

void compare_links(const Trace& trace, const Timeline& by_links, const Timeline& at_random,
                   Answers& answers) {
  std::vector<double> shorter;
  for (std::size_t i = 0; i < trace.jobs.size(); ++i) {
    const JobOutcome& one = by_links.outcomes[i];
    const JobOutcome& other = at_random.outcomes[i];
    if (!is_distributed(trace.jobs[i]) || !one.ran() || !other.ran()) continue;
    const bool inside = on_one_node(one) && on_one_node(other);
    LinkGain& gain = inside ? answers.in_node : answers.between_nodes;
    ++gain.jobs;
    const auto by_links_s = static_cast<double>(one.end_s - one.start_s);
    const auto at_random_s = static_cast<double>(other.end_s - other.start_s);
    gain.by_links_s += by_links_s;
    gain.at_random_s += at_random_s;
    shorter.push_back(100 * (1 - by_links_s / at_random_s));
  }
  if (shorter.empty()) return;
  std::ranges::sort(shorter);
  answers.median_shorter_percent = shorter[shorter.size() / 2];
  answers.most_shorter_percent = shorter.back();
}

std::string why_no_gain(const Cluster& cluster, const LinkGain& gain) {
  if (gain.jobs == 0 || std::abs(gain.shorter_percent()) >= kNoGain) return "";
  if (cluster.topologies.empty()) return "the links of the nodes are not known";
  for (const auto& [name, node] : cluster.topologies) {
    const Result<NodeLinks> links = NodeLinks::of(node);
    if (!links || !links->all_equal())
      return "the jobs take whole nodes, or send too little for links to matter";
  }
  return "every two GPUs of a node have equal links (NVSwitch), so no choice among them is better";
}

std::string decimal(double value, const char* format = "%.1f") {
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}

std::string of_jobs(std::int64_t part, std::int64_t all) {
  return std::to_string(part) + " of " + std::to_string(all) + " jobs (" +
         decimal(all == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(all)) +
         " %)";
}

double ratio(double part, double all) { return all > 0 ? 100 * part / all : 0; }

std::string use_sentence(const Answers& a) {
  return "On whole GPUs " + of_jobs(a.whole.little, a.whole.jobs) +
         " use under 30 % of what they hold; those waste " + decimal(a.whole.little_wasted_h) +
         " GPU hours, all jobs together " + decimal(a.whole.held_h - a.whole.used_h) + " of " +
         decimal(a.whole.held_h) + ". With shares as asked it is " +
         of_jobs(a.asked.little, a.asked.jobs) + ", " + decimal(a.asked.little_wasted_h) +
         " GPU hours; all together " + decimal(std::max(0.0, a.asked.held_h - a.asked.used_h)) +
         " of " + decimal(a.asked.held_h) + ".";
}

std::string sharing_sentence(const Answers& a) {
  if (!a.any_share) return "No job asks a share of a GPU, so sharing changes nothing.";
  return "Sharing raises the use of GPUs that are held from " +
         decimal(ratio(a.whole_use.used, a.whole_use.held)) + " % to " +
         decimal(ratio(a.asked_use.used, a.asked_use.held)) + " %, of all GPUs from " +
         decimal(a.whole_use.used) + " % to " + decimal(a.asked_use.used) +
         " % (mean until the last arrival); a job waits " +
         decimal(a.asked_use.mean_wait_s, "%.0f") + " s instead of " +
         decimal(a.whole_use.mean_wait_s, "%.0f") + " s, all is done after " +
         std::to_string(a.asked_use.took_s) + " s instead of " +
         std::to_string(a.whole_use.took_s) + " s.";
}

std::string gain_text(const LinkGain& gain) {
  const double shorter = gain.shorter_percent();
  return std::to_string(gain.jobs) + (gain.jobs == 1 ? " job runs " : " jobs run ") +
         decimal(std::abs(shorter)) + (shorter < 0 ? " % longer" : " % shorter");
}

std::string links_sentence(const Answers& a) {
  if (a.in_node.jobs + a.between_nodes.jobs == 0)
    return "No job of several GPUs ran, so links make no difference.";
  std::string text = "By links instead of at random: ";
  if (a.in_node.jobs > 0) text += "inside a node " + gain_text(a.in_node);
  if (!a.why_no_gain.empty()) text += " (no gain: " + a.why_no_gain + ")";
  if (a.between_nodes.jobs > 0)
    text += std::string(a.in_node.jobs > 0 ? "; " : "") + "over several nodes " +
            gain_text(a.between_nodes);
  return text + ". Of single jobs the median is " + decimal(a.median_shorter_percent) +
         " % shorter, the most " + decimal(a.most_shorter_percent) + " %.";
}

}  // namespace

double LinkGain::shorter_percent() const {
  return at_random_s > 0 ? 100 * (1 - by_links_s / at_random_s) : 0;
}

Result<Answered> answer_questions(const Cluster& cluster, const Trace& trace,
                                  const QuestionPlan& plan, const NamedProgress& progress) {
  Answered answered;
  Answers& answers = answered.answers;
  answers.policy = plan.policy;
  Trace asked = trace;
  const bool told = std::ranges::any_of(asked.jobs, is_distributed);
  if (!told) {
    for (Job& job : asked.jobs)
      if (job.gpus() > 1) job.work.all_reduce_mb_s = plan.all_reduce_mb_s;
    answers.assumptions.push_back(
        "The trace does not tell what jobs of several GPUs send: each is taken to sum up " +
        std::to_string(plan.all_reduce_mb_s) + " MB a second of compute over its GPUs.");
  }
  const Trace whole = on_whole_gpus(asked, cluster.nodes);
  answers.any_share = std::ranges::any_of(asked.jobs, asks_share);
  struct Case {
    std::string name;
    const Trace& trace;
    std::string policy;
    bool scatter;
  };
  for (const Case& one :
       {Case{plan.policy + ", as asked", asked, plan.policy, false},
        Case{plan.policy + ", whole GPUs", whole, plan.policy, false},
        Case{"by links", asked, "topology", false}, Case{"at random", asked, "random", true}}) {
    TimelinePlan timeline_plan;
    timeline_plan.policy = one.policy;
    timeline_plan.seed = plan.seed;
    timeline_plan.time = TimeModel::kModelled;
    timeline_plan.scatter = one.scatter;
    Result<Timeline> timeline =
        run_timeline(cluster, one.trace, timeline_plan, [&](std::size_t done, std::size_t of) {
          if (progress) progress(one.name, done, of);
        });
    if (!timeline) return timeline.error();
    timeline->policy = one.name;
    answered.timelines.push_back(*std::move(timeline));
  }
  answers.asked = use_of(answered.timelines[0]);
  answers.asked_use = utilisation_of(asked, answered.timelines[0]);
  answers.whole = use_of(answered.timelines[1]);
  answers.whole_use = utilisation_of(whole, answered.timelines[1]);
  compare_links(asked, answered.timelines[2], answered.timelines[3], answers);
  answers.why_no_gain = why_no_gain(cluster, answers.in_node);
  return answered;
}

std::vector<std::string> sentences(const Answers& answers) {
  return {use_sentence(answers), sharing_sentence(answers), links_sentence(answers)};
}

}  // namespace aliquot::replay
