// Of report.h: the summary, CSV and JSON.
#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <numeric>

#include "replay/report.h"

namespace aliquot::replay {
namespace {

using format::Json;

Json summary_json(const Summary& s) {
  return Json::object()
      .set("jobs", s.jobs)
      .set("placed_at_once", s.placed)
      .set("delayed", s.delayed)
      .set("still_waiting", s.waiting)
      .set("never", s.refused)
      .set("mean_used_percent", s.mean_used)
      .set("mean_busy_percent", s.mean_busy)
      .set("peak_used_percent", s.peak_used)
      .set("mean_fragmented_percent", s.mean_fragmented)
      .set("mean_wait_s", s.mean_wait_s)
      .set("p95_wait_s", s.p95_wait_s)
      .set("longest_wait_s", s.longest_wait_s)
      .set("took_s", s.took_s);
}

Json samples_json(const Timeline& timeline) {
  Json samples = Json::array();
  for (const Sample& sample : timeline.samples) {
    Json nodes = Json::array();
    for (const std::uint8_t percent : sample.node_percent)
      nodes.append(percent == kNoGpu ? Json() : Json(int{percent}));
    samples.append(Json::object()
                       .set("time_s", sample.time_s)
                       .set("used_milli", sample.used_milli)
                       .set("busy_milli", sample.busy_milli)
                       .set("fragmented_milli", sample.fragmented_milli)
                       .set("running", sample.running)
                       .set("waiting", sample.waiting)
                       .set("node_percent", std::move(nodes)));
  }
  return samples;
}

Json job_json(const Job& job, const JobOutcome& outcome, const Cluster& cluster) {
  Json json = Json::object()
                  .set("name", job.request.name)
                  .set("arrival_s", job.arrival_s)
                  .set("fate", fate_name(outcome.fate));
  if (!outcome.reason.empty()) json.set("reason", outcome.reason);
  if (!outcome.ran()) return json;
  Json pods = Json::array();
  for (const model::Placement& placement : outcome.placements) {
    Json gpus = Json::array();
    for (const model::GpuPart& part : placement.gpus) gpus.append(part.gpu);
    pods.append(Json::object()
                    .set("node", cluster.nodes[static_cast<std::size_t>(placement.node)].name)
                    .set("gpus", std::move(gpus)));
  }
  return json.set("start_s", outcome.start_s)
      .set("end_s", outcome.end_s)
      .set("held_gpu_s", outcome.held_gpu_s)
      .set("used_gpu_s", outcome.used_gpu_s)
      .set("pods", std::move(pods));
}

}  // namespace

Summary summary_of(const Trace& trace, const Timeline& timeline) {
  Summary s;
  s.policy = timeline.policy;
  s.jobs = static_cast<std::int64_t>(timeline.outcomes.size());
  for (const JobOutcome& outcome : timeline.outcomes) {
    s.placed += outcome.fate == Fate::kPlaced;
    s.delayed += outcome.fate == Fate::kDelayed;
    s.waiting += outcome.fate == Fate::kWaiting;
    s.refused += outcome.fate == Fate::kRefused;
  }
  s.mean_used = 100 * timeline.mean_used;
  s.mean_busy = 100 * timeline.mean_busy;
  s.peak_used = 100 * timeline.peak_used;
  s.mean_fragmented = 100 * timeline.mean_fragmented;
  s.took_s = timeline.end_s - timeline.first_arrival_s;
  const std::vector<std::int64_t> waits = waits_of(trace, timeline);
  if (waits.empty()) return s;
  s.mean_wait_s =
      std::accumulate(waits.begin(), waits.end(), 0.0) / static_cast<double>(waits.size());
  s.p95_wait_s = waits[(waits.size() * 95 + 99) / 100 - 1];
  s.longest_wait_s = waits.back();
  return s;
}

std::string cluster_text(const Cluster& cluster) {
  std::map<std::string, std::int64_t> by_model;
  std::int64_t all = 0;
  for (const model::NodeSpec& node : cluster.nodes) {
    all += node.gpu_count;
    if (node.gpu_count > 0) by_model[node.gpu.name] += node.gpu_count;
  }
  std::string text = std::to_string(all) + (all == 1 ? " GPU on " : " GPUs on ") +
                     std::to_string(cluster.nodes.size()) +
                     (cluster.nodes.size() == 1 ? " node" : " nodes");
  std::string_view before = ": ";
  for (const auto& [name, count] : by_model) {
    text += std::string(before) + std::to_string(count) + " " + name;
    before = ", ";
  }
  return text;
}

namespace {

constexpr std::array kTimeModel{
    "Time model: a second of a job's duration takes its compute or what it reads, whichever is "
    "longer, and then its all-reduce; no all-reduce hides behind compute.",
    "A duration measured on one GPU model is converted to another by the geometric mean of dense "
    "FP16 rate and memory bandwidth; where a model is not known, as if it were the same.",
    "Jobs on one GPU run at full speed while what they use fits it; beyond that each gets its "
    "guarantee and the rest in proportion (policy burst). Caches and memory bandwidth are not "
    "modelled, nor is the price of switching.",
    "A job uses what the trace tells, else all that it asks; a share of memory only uses as large "
    "a "
    "part of the compute.",
    "An all-reduce over k GPUs sends 2 (k - 1) / k x bytes over the slowest hop of the best ring "
    "of "
    "the GPUs chosen; wires are nominal, shared max-min fairly, and a job takes the others on its "
    "node to send at their mean rate.",
    "Between nodes GPUs go by the NIC nearest to them: rails that two pods have in common at the "
    "NIC's rate (its PCIe port's), all else over the spine at half of it; 100 Gbit/s where links "
    "are not known."};

Json use_json(const UseOfHeld& use) {
  return Json::object()
      .set("jobs", use.jobs)
      .set("jobs_under_30_percent", use.little)
      .set("held_gpu_hours", use.held_h)
      .set("used_gpu_hours", use.used_h)
      .set("wasted_by_those_gpu_hours", use.little_wasted_h);
}

Json utilisation_json(const Utilisation& use) {
  return Json::object()
      .set("mean_used_percent", use.held)
      .set("mean_busy_percent", use.used)
      .set("mean_wait_s", use.mean_wait_s)
      .set("took_s", use.took_s);
}

Json gain_json(const LinkGain& gain) {
  return Json::object()
      .set("jobs", gain.jobs)
      .set("by_links_s", gain.by_links_s)
      .set("at_random_s", gain.at_random_s)
      .set("shorter_percent", gain.shorter_percent());
}

Json answers_json(const Answers& a) {
  Json said = Json::array();
  for (const std::string& sentence : sentences(a)) said.append(sentence);
  Json links = Json::object()
                   .set("in_node", gain_json(a.in_node))
                   .set("between_nodes", gain_json(a.between_nodes))
                   .set("median_shorter_percent", a.median_shorter_percent)
                   .set("most_shorter_percent", a.most_shorter_percent);
  if (!a.why_no_gain.empty()) links.set("why_no_gain", a.why_no_gain);
  return Json::object()
      .set("policy", a.policy)
      .set("sentences", std::move(said))
      .set("use",
           Json::object().set("whole_gpus", use_json(a.whole)).set("as_asked", use_json(a.asked)))
      .set("sharing", Json::object()
                          .set("whole_gpus", utilisation_json(a.whole_use))
                          .set("as_asked", utilisation_json(a.asked_use)))
      .set("links", std::move(links));
}

}  // namespace

std::vector<std::string> assumptions_of(const Report& report) {
  // NOLINTBEGIN(bugprone-suspicious-missing-comma): sentences longer than a line
  std::vector<std::string> all{
      "Replayed in virtual time: nothing ran, no GPU was used. The decisions are the scheduler's.",
      "A job that does not fit waits; whenever one leaves, all that wait are tried again in "
      "order of arrival. Small jobs may pass a large one for as long as they come: nothing is held "
      "back.",
      "GPU use is what is promised, by the scarcer of compute and memory on each GPU, not what a "
      "program makes of it.",
      "Fragmentation is FGD's measure (USENIX ATC 2023) for this trace's own mix of jobs, all of "
      "which is known from the start; fgd and rollout decide with that mix."};
  if (report.time == TimeModel::kAsListed)
    all.emplace_back(
        "A job runs for its duration wherever it is placed: neither the GPU's model, nor "
        "neighbours on the same GPU, nor links change it.");
  else
    all.insert(all.end(), std::begin(kTimeModel), std::end(kTimeModel));
  // NOLINTEND(bugprone-suspicious-missing-comma)
  if (report.answers)
    all.insert(all.end(), report.answers->assumptions.begin(), report.answers->assumptions.end());
  all.insert(all.end(), report.trace.assumptions.begin(), report.trace.assumptions.end());
  all.insert(all.end(), report.cluster.assumptions.begin(), report.cluster.assumptions.end());
  return all;
}

std::string report_csv(const Report& report) {
  std::string text =
      "policy,time_s,used_milli,busy_milli,total_milli,fragmented_milli,running,waiting\n";
  for (const Timeline& timeline : report.timelines)
    for (const Sample& s : timeline.samples)
      text += timeline.policy + "," + std::to_string(s.time_s) + "," +
              std::to_string(s.used_milli) + "," + std::to_string(s.busy_milli) + "," +
              std::to_string(timeline.total_milli) + "," + std::to_string(s.fragmented_milli) +
              "," + std::to_string(s.running) + "," + std::to_string(s.waiting) + "\n";
  return text;
}

Json report_json(const Report& report) {
  Json nodes = Json::array();
  for (const model::NodeSpec& node : report.cluster.nodes) nodes.append(node.name);
  Json assumptions = Json::array();
  for (const std::string& one : assumptions_of(report)) assumptions.append(one);
  Json runs = Json::array();
  for (const Timeline& timeline : report.timelines) {
    Json jobs = Json::array();
    for (std::size_t i = 0; i < timeline.outcomes.size(); ++i)
      jobs.append(job_json(report.trace.jobs[i], timeline.outcomes[i], report.cluster));
    runs.append(Json::object()
                    .set("policy", timeline.policy)
                    .set("summary", summary_json(summary_of(report.trace, timeline)))
                    .set("samples", samples_json(timeline))
                    .set("jobs", std::move(jobs)));
  }
  Json json = Json::object();
  if (report.answers) json.set("answers", answers_json(*report.answers));
  return json.set("format", "aliquot-replay/1")
      .set("simulated", true)
      .set("trace", report.trace.name)
      .set("cluster", report.cluster.name)
      .set("total_milli", report.timelines.empty() ? 0 : report.timelines.front().total_milli)
      .set("nodes", std::move(nodes))
      .set("time_model", report.time == TimeModel::kModelled)
      .set("assumptions", std::move(assumptions))
      .set("runs", std::move(runs));
}

}  // namespace aliquot::replay
