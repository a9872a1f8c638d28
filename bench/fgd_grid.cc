// The published FGD grid: policies x lists x seeds, against data/fgd_published.csv; and the same
// for lists outside it, to choose constants on.
//
//   fgd_grid TRACES [--lists a,b] [--policies a,b] [--seeds N] [--order csv] [--published FILE]
#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <map>
#include <thread>
#include <vector>

#include "common/files.h"
#include "replay/inflation.h"

namespace {

using aliquot::replay::InflationPlan;
using aliquot::replay::InflationResult;

struct Options {
  std::string traces;
  std::vector<std::string> lists{"default",   "cpu100",     "gpushare40", "gpushare100",
                                 "gpuspec33", "multigpu20", "multigpu50"};
  std::vector<std::string> policies{"random", "dotprod", "clustering", "packing", "bestfit", "fgd"};
  int seeds = 10;
  bool csv_order = false;
  std::string published;
  unsigned threads = 2;
  aliquot::scheduler::RolloutTuning rollout;
};

struct Cell {
  std::string list;
  std::string policy;
  std::vector<InflationResult> runs;
};

double mean(const std::vector<InflationResult>& runs, double (*of)(const InflationResult&)) {
  double sum = 0;
  for (const InflationResult& run : runs) sum += of(run);
  return sum / static_cast<double>(runs.size());
}

double at_100(const InflationResult& r) { return r.allocated[100]; }
double at_130(const InflationResult& r) { return r.allocated[130]; }
double fragmented(const InflationResult& r) { return r.fragmented; }
double placed_8gpu(const InflationResult& r) {
  return r.arrived_8gpu == 0
             ? 100.0
             : 100.0 * static_cast<double>(r.placed_8gpu) / static_cast<double>(r.arrived_8gpu);
}

using Published = std::map<std::pair<std::string, std::string>, std::array<double, 4>>;

// Their names for the policies.
std::string published_name(const std::string& policy) {
  static const std::map<std::string, std::string> names{
      {"random", "Random"},      {"dotprod", "DotProd"}, {"clustering", "GpuClustering"},
      {"packing", "GpuPacking"}, {"bestfit", "BestFit"}, {"fgd", "FGD"}};
  const auto found = names.find(policy);
  return found == names.end() ? "FGD" : found->second;
}

Published read_published(const std::string& path) {
  Published table;
  if (path.empty()) return table;
  const auto text = aliquot::read_file(path);
  if (!text) return table;
  std::size_t at = text->find('\n');
  while (at != std::string::npos && at + 1 < text->size()) {
    const std::size_t end = text->find('\n', at + 1);
    char list[32];
    char policy[32];
    std::array<double, 4> v{};
    if (std::sscanf(text->substr(at + 1, end - at - 1).c_str(), "%31[^,],%31[^,],%lf,%lf,%lf,%lf",
                    list, policy, &v[0], &v[1], &v[2], &v[3]) == 6)
      table[{list, policy}] = v;
    at = end;
  }
  return table;
}

int run(const Options& options) {
  const auto nodes =
      aliquot::replay::read_openb_nodes(options.traces + "/openb_node_list_gpu_node.csv");
  if (!nodes) return std::fprintf(stderr, "fgd_grid: %s\n", nodes.error().message.c_str()), 1;
  std::map<std::string, std::vector<aliquot::replay::OpenbPod>> pods;
  for (const std::string& list : options.lists) {
    auto read =
        aliquot::replay::read_openb_pods(options.traces + "/openb_pod_list_" + list + ".csv");
    if (!read) return std::fprintf(stderr, "fgd_grid: %s\n", read.error().message.c_str()), 1;
    pods[list] = *std::move(read);
  }
  std::vector<Cell> cells;
  for (const std::string& list : options.lists)
    for (const std::string& policy : options.policies)
      cells.push_back(
          {list, policy, std::vector<InflationResult>(static_cast<std::size_t>(options.seeds))});
  const std::size_t seeds = static_cast<std::size_t>(options.seeds);
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < cells.size() * seeds; i = next++) {
      Cell& cell = cells[i / seeds];
      const InflationPlan plan{cell.policy, 42 + i % seeds,
                               options.csv_order ? aliquot::replay::NodeOrder::kAsListed
                                                 : aliquot::replay::NodeOrder::kPermuted,
                               aliquot::replay::kMostArrivedPercent, options.rollout};
      auto result = aliquot::replay::run_inflation(*nodes, pods[cell.list], plan);
      if (!result) std::fprintf(stderr, "fgd_grid: %s\n", result.error().message.c_str()), exit(1);
      cell.runs[i % seeds] = *result;
    }
  };
  std::vector<std::jthread> threads;
  for (unsigned t = 0; t < options.threads; ++t) threads.emplace_back(work);
  threads.clear();

  const Published published = read_published(options.published);
  std::printf("%-12s %-10s %8s %8s %8s %8s %8s %8s\n", "list", "policy", "at100", "at130",
              "frag130", "8gpu", "d100", "d130");
  for (const Cell& cell : cells) {
    const auto known = published.find({cell.list, published_name(cell.policy)});
    const double d100 = known == published.end() ? NAN : mean(cell.runs, at_100) - known->second[0];
    const double d130 = known == published.end() ? NAN : mean(cell.runs, at_130) - known->second[1];
    std::printf("%-12s %-10s %8.2f %8.2f %8.2f %8.2f %+8.2f %+8.2f\n", cell.list.c_str(),
                cell.policy.c_str(), mean(cell.runs, at_100), mean(cell.runs, at_130),
                mean(cell.runs, fragmented), mean(cell.runs, placed_8gpu), d100, d130);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("The FGD inflation grid (simulated placements of the openb traces)");
  app.add_option("traces", options.traces, "folder of the openb CSVs")->required();
  app.add_option("--lists", options.lists)->delimiter(',');
  app.add_option("--policies", options.policies)->delimiter(',');
  app.add_option("--seeds", options.seeds);
  app.add_option("--threads", options.threads);
  app.add_flag("--csv-order", options.csv_order, "nodes as listed instead of permuted");
  app.add_option("--published", options.published, "fgd_published.csv to compare with");
  auto& r = options.rollout;
  app.add_option("--sequences", r.sequences);
  app.add_option("--length", r.length);
  app.add_option("--cpu-only", r.cpu_only);
  app.add_option("--size-exponent", r.size_exponent);
  app.add_option("--small-share", r.small_share);
  app.add_option("--large-share", r.large_share);
  app.add_option("--blocks", r.blocks);
  app.add_option("--opening", r.opening);
  app.add_option("--rare-opening", r.rare_opening);
  app.add_option("--rare-nodes", r.rare_nodes);
  app.add_option("--scarcity", r.scarcity);
  app.add_option("--scarcity-power", r.scarcity_power);
  app.add_option("--step", r.step);
  app.add_option("--draw-seed", r.seed);
  CLI11_PARSE(app, argc, argv);
  return run(options);
}
