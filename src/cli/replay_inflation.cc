#include "cli/replay_inflation.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "cli/table.h"
#include "replay/inflation_report.h"
#include "replay/report.h"

namespace aliquot::cli {
namespace {

using replay::InflationReport;
using replay::InflationRuns;
using replay::Spread;

std::string spread_text(const Spread& spread, int seeds) {
  return seeds == 1
             ? fmt::format("{:.2f} %", spread.mean)
             : fmt::format("{:.2f} % ({:.2f}-{:.2f})", spread.mean, spread.least, spread.most);
}

std::string table_text(const InflationReport& report, int seeds) {
  using enum Table::Align;
  Table table({{"policy"},
               {"allocated at 100 %", kRight},
               {"at 130 %", kRight},
               {"fragmented", kRight},
               {"refused", kRight},
               {"of", kRight}});
  for (const InflationRuns& runs : report.runs)
    table.add({runs.policy, spread_text(allocated_at(runs, 100), seeds),
               spread_text(allocated_at(runs, 130), seeds), spread_text(fragmented(runs), seeds),
               fmt::format("{:.0f}", refused(runs).mean),
               std::to_string(runs.results[0].arrived_pods)});
  return table.text();
}

}  // namespace

Status inflate_trace(const ReplayOptions& options, Invocation& invocation) {
  const auto pods = replay::read_openb_pods(options.trace);
  if (!pods) return pods.error();
  const Result<replay::Cluster> cluster = cluster_for(options);
  if (!cluster) return cluster.error();
  InflationReport report{std::filesystem::path(options.trace).filename().string(),
                         cluster->name + ", " + cluster_text(*cluster),
                         {}};
  ProgressBar bar(invocation.err, "inflation");
  std::size_t done = 0;
  const auto seeds = static_cast<std::size_t>(options.seeds);
  for (const std::string& name : options.policies) {
    InflationRuns runs{name, {}, {}};
    const std::string policy = policy_of(name);
    for (std::size_t i = 0; i < seeds; ++i) {
      bar.show(done++, seeds * options.policies.size());
      replay::InflationPlan plan;
      plan.policy = policy;
      plan.seed = options.seed + i;
      auto result = replay::run_inflation(cluster->nodes, *pods, plan);
      if (!result) return result.error();
      runs.seeds.push_back(plan.seed);
      runs.results.push_back(*std::move(result));
    }
    report.runs.push_back(std::move(runs));
  }
  invocation.out << fmt::format(
      "simulated: pods of {} arrive on {} ({}) up to 130 % of its GPUs, none leaves ({})\n{}",
      options.trace, cluster->name, cluster_text(*cluster),
      seeds == 1
          ? fmt::format("seed {}", options.seed)
          : fmt::format("seeds {} to {}: mean, least-most", options.seed, options.seed + seeds - 1),
      table_text(report, options.seeds));
  const ReplayFiles files{
      [&] { return replay::inflation_csv(report); },
      [&] { return replay::inflation_json(report).dump(1) + "\n"; },
      [&] { return replay::inflation_html(report); },
  };
  return write_replay_files(options, files, invocation.out);
}

}  // namespace aliquot::cli
