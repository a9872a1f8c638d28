#include "cli/replay_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <utility>

#include "cli/replay_cluster.h"
#include "cli/replay_inflation.h"
#include "cli/replay_options.h"
#include "cli/table.h"
#include "replay/report.h"
#include "replay/report_svg.h"
#include "scheduler/policies.h"

namespace aliquot::cli {
namespace {

using replay::Cluster;
using replay::Summary;
using replay::Timeline;

// ---- what is asked

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
  return fmt::format("simulated: {} job{} of {} replayed in virtual time on {} ({})\n{}",
                     report.trace.jobs.size(), report.trace.jobs.size() == 1 ? "" : "s",
                     report.trace.name, report.cluster.name, cluster_text(report.cluster),
                     table.text());
}

Status write_files(const ReplayOptions& options, const replay::Report& report, std::ostream& out) {
  const ReplayFiles files{
      [&] { return replay::report_csv(report); },
      [&] { return replay::report_json(report).dump(1) + "\n"; },
      [&] { return replay::report_html(report); },
  };
  return write_replay_files(options, files, out);
}

Status run_policies(const ReplayOptions& options, replay::Report& report, Invocation& invocation) {
  for (const std::string& name : options.policies) {
    ProgressBar bar(invocation.err, name);
    replay::TimelinePlan plan;
    plan.policy = policy_of(name);
    plan.seed = options.seed;
    plan.time = options.time;
    Result<Timeline> timeline =
        replay::run_timeline(report.cluster, report.trace, plan,
                             [&](std::size_t done, std::size_t all) { bar.show(done, all); });
    if (!timeline) return timeline.error();
    timeline->policy = name;
    report.timelines.push_back(*std::move(timeline));
  }
  return {};
}

Status run_answers(const ReplayOptions& options, replay::Report& report, Invocation& invocation) {
  if (options.policies.size() > 1)
    return Error{Errc::kInvalid, "--answers: takes one policy; it compares by itself"};
  replay::QuestionPlan plan;
  plan.policy = policy_of(options.policies[0]);
  plan.seed = options.seed;
  plan.all_reduce_mb_s = options.all_reduce_mb_s;
  ProgressBar bar(invocation.err, "answers");
  std::size_t before = 0;  // jobs of the replays that are over
  std::string run;
  Result<replay::Answered> answered =
      replay::answer_questions(report.cluster, report.trace, plan,
                               [&](const std::string& name, std::size_t done, std::size_t all) {
                                 if (name != run && !run.empty()) before += all;
                                 run = name;
                                 bar.show(before + done, replay::kAnswerRuns * all);
                               });
  if (!answered) return answered.error();
  report.timelines = std::move(answered->timelines);
  report.answers = std::move(answered->answers);
  report.time = replay::TimeModel::kModelled;
  return {};
}

Status replay_trace(const ReplayOptions& options, Invocation& invocation) {
  Result<replay::Trace> whole = replay::read_trace(options.trace);
  if (!whole) return whole.error();
  if (whole->jobs.empty()) return Error{Errc::kInvalid, options.trace + ": has no jobs"};
  Result<Cluster> cluster = cluster_for(options);
  if (!cluster) return cluster.error();
  replay::Trace trace = replay::cut_to_nodes(*std::move(whole), cluster->nodes);
  if (options.dense > 1) {
    trace = replay::condensed(trace, options.dense);
    cluster->assumptions.push_back(fmt::format(
        "Jobs arrive {} times as densely as the trace says (--dense); they run as long.",
        options.dense));
  }
  replay::Report report{trace, *cluster, {}, options.time, {}};
  if (Status ok = options.answers ? run_answers(options, report, invocation)
                                  : run_policies(options, report, invocation);
      !ok)
    return ok;
  invocation.out << summary_text(report);
  if (report.answers)
    for (const std::string& sentence : sentences(*report.answers))
      invocation.out << '\n' << sentence << '\n';
  return write_files(options, report, invocation.out);
}

std::string policy_help() {
  std::string text = "Placement policies to compare: ours (" + std::string(kOursIs) + ")";
  for (const scheduler::PolicyRow& row : scheduler::policies())
    if (row.name != kOursIs) text += ", " + std::string(row.name);
  return text;
}

void add_inputs(CLI::App& replay, ReplayOptions& options) {
  replay.add_option("trace", options.trace, "Jobs as CSV, or a published trace (docs/replay.md)")
      ->required()
      ->type_name("TRACE");
  replay.add_option("--policy", options.policies, policy_help())
      ->delimiter(',')
      ->type_name("NAME[,NAME...]")
      ->capture_default_str();
  replay
      .add_option("--cluster", options.cluster,
                  "Node list as CSV, or N machines of a preset (a100x8x4); default: cluster.csv "
                  "beside the trace")
      ->type_name("FILE|PRESETxN");
  replay
      .add_option("--domains", options.domains,
                  "Where nodes lie together: topology.conf, or Nodes with labels, HyperNodes, "
                  "Topology as JSON")
      ->type_name("FILE");
  replay.add_option("--seed", options.seed, "Of the policy random, and the first of --inflation")
      ->capture_default_str();
  replay.add_option("--csv", options.csv, "Write samples over time as CSV")->type_name("FILE");
  replay.add_option("--json", options.json, "Write samples and every job's fate")
      ->type_name("FILE");
  replay.add_option("--html", options.html, "Write a page with plots, side by side")
      ->type_name("FILE");
}

// The ways to replay: as listed, under the time model, for answers, or by inflation.
void add_ways(CLI::App& replay, ReplayOptions& options) {
  auto* dense = replay
                    .add_option("--dense", options.dense,
                                "Let jobs arrive N times as densely as the trace says")
                    ->type_name("N")
                    ->check(CLI::Range(1, 1'000'000));
  const std::map<std::string, replay::TimeModel> times{{"listed", replay::TimeModel::kAsListed},
                                                       {"modelled", replay::TimeModel::kModelled}};
  auto* time = replay
                   .add_option("--time", options.time,
                               "How long jobs run: as listed, or modelled (GPU speed, sharing, "
                               "all-reduce over the links)")
                   ->type_name("listed|modelled")
                   ->transform(CLI::CheckedTransformer(times).description(""));
  auto* answers = replay.add_flag("--answers", options.answers,
                                  "Tell what jobs waste, what sharing gains, what links gain: four "
                                  "replays under the time model");
  answers->excludes(time);
  replay
      .add_option("--all-reduce", options.all_reduce_mb_s,
                  "MB a second of compute that jobs of several GPUs sum up, where the trace tells "
                  "of none")
      ->type_name("MB")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str()
      ->needs(answers);
  auto* inflation = replay.add_flag(
      "--inflation", options.inflation,
      "Protocol of the FGD paper on openb pods: they arrive up to 130 % of the cluster, none "
      "leaves");
  for (CLI::Option* other : {dense, time, answers}) inflation->excludes(other);
  replay.add_option("--seeds", options.seeds, "Number of seeds of --inflation, from --seed on")
      ->type_name("N")
      ->check(CLI::Range(1, 1'000))
      ->capture_default_str()
      ->needs(inflation);
}

}  // namespace

void add_replay_command(CLI::App& app, Invocation& invocation) {
  CLI::App* replay = app.add_subcommand(
      "replay", "Replay a trace of jobs in virtual time under placement policies");
  // Shared with the callback, which outlives this function.
  auto options = std::make_shared<ReplayOptions>();
  add_inputs(*replay, *options);
  add_ways(*replay, *options);
  replay->callback([options, &invocation] {
    Status done = check_policies(options->policies);
    if (done)
      done = options->inflation ? inflate_trace(*options, invocation)
                                : replay_trace(*options, invocation);
    if (!done) fail(invocation, "replay", done.error());
  });
}

}  // namespace aliquot::cli
