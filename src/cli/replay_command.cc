#include "cli/replay_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>
#include <utility>

#include "cli/replay_cluster.h"
#include "cli/table.h"
#include "common/files.h"
#include "replay/inflation.h"
#include "replay/report.h"
#include "replay/report_svg.h"
#include "scheduler/policies.h"

namespace aliquot::cli {
namespace {

using replay::Cluster;
using replay::Summary;
using replay::Timeline;

// The name under which the default is known to people; the scheduler calls it by what it does.
constexpr std::string_view kOurs = "ours";
constexpr std::string_view kOursIs = "rollout";

struct ReplayOptions {
  std::string trace;
  std::string cluster;
  std::vector<std::string> policies{std::string(kOurs)};
  std::uint64_t seed = 42;
  std::int64_t dense = 1;
  bool inflation = false;
  std::string csv;
  std::string json;
  std::string html;
};

// A line on a terminal that shows how far a run is; nothing elsewhere, and gone at the end.
class ProgressBar {
 public:
  ProgressBar(std::ostream& err, std::string what)
      : err_(err),
        what_(std::move(what)),
        shown_(&err == &std::cerr && isatty(STDERR_FILENO) == 1) {}
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  ~ProgressBar() {
    if (shown_) err_ << "\r\x1b[K" << std::flush;
  }
  void show(std::size_t done, std::size_t all) {
    const int percent = all == 0 ? 100 : static_cast<int>(done * 100 / all);
    if (!shown_ || percent == percent_) return;
    percent_ = percent;
    const auto filled = static_cast<std::size_t>(percent * 30 / 100);
    err_ << "\r" << what_ << " [" << std::string(filled, '#') << std::string(30 - filled, ' ')
         << "] " << percent << " %" << std::flush;
  }

 private:
  std::ostream& err_;
  std::string what_;
  bool shown_;
  int percent_ = -1;
};

// ---- what is asked

std::string policy_of(const std::string& name) {
  return name == kOurs ? std::string(kOursIs) : name;
}

// Each once, all known: no policy runs before a later name turns out wrong.
Status check_policies(const std::vector<std::string>& names) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string policy = policy_of(names[i]);
    if (std::ranges::none_of(scheduler::policies(),
                             [&](const auto& row) { return row.name == policy; }))
      return scheduler::make_policy(policy, {}).error();
    for (std::size_t j = 0; j < i; ++j)
      if (policy_of(names[j]) == policy)
        return Error{Errc::kInvalid, "--policy: " + names[i] + " is named twice"};
  }
  return {};
}

Result<Cluster> cluster_for(const ReplayOptions& options) {
  return options.cluster.empty() ? cluster_beside(options.trace) : cluster_of(options.cluster);
}

// ---- virtual time

std::string summary_text(const replay::Report& report) {
  using enum Table::Align;
  Table table({{"policy"},
               {"placed", kRight},
               {"delayed", kRight},
               {"waiting", kRight},
               {"never", kRight},
               {"GPUs used", kRight},
               {"peak", kRight},
               {"fragmented", kRight},
               {"mean wait", kRight},
               {"95 %", kRight},
               {"longest", kRight}});
  for (const Timeline& timeline : report.timelines) {
    const Summary s = replay::summary_of(report.trace, timeline);
    table.add({s.policy, std::to_string(s.placed), std::to_string(s.delayed),
               std::to_string(s.waiting), std::to_string(s.refused),
               fmt::format("{:.1f} %", s.mean_used), fmt::format("{:.1f} %", s.peak_used),
               fmt::format("{:.1f} %", s.mean_fragmented),
               replay::time_text(std::lround(s.mean_wait_s)), replay::time_text(s.p95_wait_s),
               replay::time_text(s.longest_wait_s)});
  }
  return fmt::format("simulated: {} jobs of {} replayed in virtual time on {} ({})\n{}",
                     report.trace.jobs.size(), report.trace.name, report.cluster.name,
                     cluster_text(report.cluster), table.text());
}

Status write_files(const ReplayOptions& options, const replay::Report& report, std::ostream& out) {
  const auto write = [&](const std::string& path, const auto& make) -> Status {
    if (path.empty()) return {};
    if (Status ok = write_file_atomically(path, make(report)); !ok) return ok.error();
    out << "wrote " << path << '\n';
    return {};
  };
  if (Status ok = write(options.csv, replay::report_csv); !ok) return ok;
  const auto json = [](const replay::Report& r) { return replay::report_json(r).dump(1) + "\n"; };
  if (Status ok = write(options.json, json); !ok) return ok;
  return write(options.html, replay::report_html);
}

Status replay_trace(const ReplayOptions& options, Invocation& invocation) {
  Result<replay::Trace> trace = replay::read_trace(options.trace);
  if (!trace) return trace.error();
  if (trace->jobs.empty()) return Error{Errc::kInvalid, options.trace + ": has no jobs"};
  Result<Cluster> cluster = cluster_for(options);
  if (!cluster) return cluster.error();
  *trace = replay::cut_to_nodes(*std::move(trace), cluster->nodes);
  if (options.dense > 1) {
    *trace = replay::condensed(*trace, options.dense);
    cluster->assumptions.push_back(fmt::format(
        "Jobs arrive {} times as densely as the trace says (--dense); they run as long.",
        options.dense));
  }
  replay::Report report{*trace, *cluster, {}};
  for (const std::string& name : options.policies) {
    ProgressBar bar(invocation.err, name);
    replay::TimelinePlan plan;
    plan.policy = policy_of(name);
    plan.seed = options.seed;
    Result<Timeline> timeline = replay::run_timeline(
        *cluster, *trace, plan, [&](std::size_t done, std::size_t all) { bar.show(done, all); });
    if (!timeline) return timeline.error();
    timeline->policy = name;
    report.timelines.push_back(*std::move(timeline));
  }
  invocation.out << summary_text(report);
  return write_files(options, report, invocation.out);
}

// ---- inflation

Status inflate_trace(const ReplayOptions& options, Invocation& invocation) {
  const auto pods = replay::read_openb_pods(options.trace);
  if (!pods) return pods.error();
  const Result<Cluster> cluster = cluster_for(options);
  if (!cluster) return cluster.error();
  using enum Table::Align;
  Table table({{"policy"},
               {"allocated at 100 %", kRight},
               {"at 130 %", kRight},
               {"fragmented", kRight},
               {"refused", kRight},
               {"of", kRight}});
  std::size_t done = 0;
  for (const std::string& name : options.policies) {
    ProgressBar bar(invocation.err, name);
    bar.show(done++, options.policies.size());
    replay::InflationPlan plan;
    const std::string policy = policy_of(name);
    plan.policy = policy;
    plan.seed = options.seed;
    const auto result = replay::run_inflation(cluster->nodes, *pods, plan);
    if (!result) return result.error();
    table.add({name, fmt::format("{:.2f} %", result->allocated[100]),
               fmt::format("{:.2f} %", result->allocated[130]),
               fmt::format("{:.2f} %", result->fragmented), std::to_string(result->refused_pods),
               std::to_string(result->arrived_pods)});
  }
  invocation.out << fmt::format(
      "simulated: pods of {} arrive on {} ({}) up to 130 % of its GPUs, none leaves (seed {})\n{}",
      options.trace, cluster->name, cluster_text(*cluster), options.seed, table.text());
  return {};
}

std::string policy_help() {
  std::string text = "Placement policies to compare: ours";
  for (const scheduler::PolicyRow& row : scheduler::policies())
    if (row.name != kOursIs) text += ", " + std::string(row.name);
  return text;
}

}  // namespace

void add_replay_command(CLI::App& app, Invocation& invocation) {
  CLI::App* replay = app.add_subcommand(
      "replay", "Replay a trace of jobs in virtual time under placement policies");
  // Shared with the callback, which outlives this function.
  auto options = std::make_shared<ReplayOptions>();
  replay->add_option("trace", options->trace, "Jobs as CSV (docs/formats/trace.md), or openb pods")
      ->required()
      ->type_name("TRACE");
  replay->add_option("--policy", options->policies, policy_help())
      ->delimiter(',')
      ->type_name("NAME[,NAME...]")
      ->capture_default_str();
  replay
      ->add_option("--cluster", options->cluster,
                   "Node list as CSV, or N machines of a preset (a100x8x4); default: cluster.csv "
                   "beside the trace")
      ->type_name("FILE|PRESETxN");
  replay->add_option("--seed", options->seed, "Of the policy random, and of --inflation")
      ->capture_default_str();
  auto* dense = replay
                    ->add_option("--dense", options->dense,
                                 "Let jobs arrive N times as densely as the trace says")
                    ->type_name("N")
                    ->check(CLI::Range(1, 1'000'000));
  auto* csv = replay->add_option("--csv", options->csv, "Write samples over time as CSV");
  auto* json = replay->add_option("--json", options->json, "Write samples and every job's fate");
  auto* html = replay->add_option("--html", options->html, "Write a page with plots, side by side");
  for (CLI::Option* file : {csv, json, html}) file->type_name("FILE");
  replay
      ->add_flag("--inflation", options->inflation,
                 "Protocol of the FGD paper on openb pods: they arrive up to 130 % of the cluster, "
                 "none leaves")
      ->excludes(dense)
      ->excludes(csv)
      ->excludes(json)
      ->excludes(html);
  replay->callback([options, &invocation] {
    Status done = check_policies(options->policies);
    if (done)
      done = options->inflation ? inflate_trace(*options, invocation)
                                : replay_trace(*options, invocation);
    if (!done) fail(invocation, "replay", done.error());
  });
}

}  // namespace aliquot::cli
