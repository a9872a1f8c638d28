// The published FGD grid: policies x lists x seeds, against data/fgd_published.csv; and the same
// for lists outside it, to choose constants on.
//
//   fgd_grid [DATA] [--lists a,b] [--policies a,b] [--seeds N] [--csv-order] [rollout constants]
// DATA holds traces/openb and fgd_published.csv; without it $ALIQUOT_SHARED_DATA. A table goes to
// stderr, the figures as JSON to stdout.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <exception>
#include <map>
#include <thread>
#include <vector>

#include "common/files.h"
#include "replay/inflation.h"
#include "support/shared_data.h"

namespace {

using aliquot::replay::InflationPlan;
using aliquot::replay::InflationResult;

struct Options {
  std::string data;
  std::vector<std::string> lists{"default",   "cpu100",     "gpushare40", "gpushare100",
                                 "gpuspec33", "multigpu20", "multigpu50"};
  std::vector<std::string> policies{"random",  "dotprod", "clustering", "packing",
                                    "bestfit", "fgd",     "rollout"};
  int seeds = 10;
  bool csv_order = false;
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

double column(const Published& published, const Cell& cell, std::size_t which) {
  const auto known = published.find({cell.list, published_name(cell.policy)});
  return known == published.end() ? NAN : known->second[which];
}

// For people, beside the figures.
void print_table(const std::vector<Cell>& cells, const Published& published) {
  std::fprintf(stderr, "%-12s %-10s %8s %8s %8s %8s %8s %8s\n", "list", "policy", "at100", "at130",
               "frag130", "8gpu", "d100", "d130");
  for (const Cell& cell : cells)
    std::fprintf(stderr, "%-12s %-10s %8.2f %8.2f %8.2f %8.2f %+8.2f %+8.2f\n", cell.list.c_str(),
                 cell.policy.c_str(), mean(cell.runs, at_100), mean(cell.runs, at_130),
                 mean(cell.runs, fragmented), mean(cell.runs, placed_8gpu),
                 mean(cell.runs, at_100) - column(published, cell, 0),
                 mean(cell.runs, at_130) - column(published, cell, 1));
}

// How far the published policies are from what was published, and rollout from FGD: published at
// 130 % arrivals, our own run at 100 % and for 8-GPU pods.
void print_figures(const std::vector<Cell>& cells, const Published& published, double seconds) {
  double worst = 0;
  std::map<std::string, const Cell*> fgd;
  for (const Cell& cell : cells) {
    if (cell.policy == "fgd") fgd[cell.list] = &cell;
    if (cell.policy == "rollout") continue;
    worst = std::max({worst, std::abs(mean(cell.runs, at_100) - column(published, cell, 0)),
                      std::abs(mean(cell.runs, at_130) - column(published, cell, 1))});
  }
  double sum = 0;
  double least = 100;
  double least_100 = 100;
  double least_8gpu = 100;
  int lists = 0;
  for (const Cell& cell : cells) {
    if (cell.policy != "rollout" || !fgd.contains(cell.list)) continue;
    const double gain = mean(cell.runs, at_130) - column(published, cell, 1);
    sum += gain;
    ++lists;
    least = std::min(least, gain);
    const std::vector<InflationResult>& base = fgd[cell.list]->runs;
    least_100 = std::min(least_100, mean(cell.runs, at_100) - mean(base, at_100));
    least_8gpu = std::min(least_8gpu, mean(cell.runs, placed_8gpu) - mean(base, placed_8gpu));
  }
  std::printf("{\"bench\": \"fgd_grid\", \"simulated\": true, \"seconds\": %.1f", seconds);
  if (!published.empty()) std::printf(", \"worst_cell_points\": %.2f", worst);
  if (lists > 0 && !published.empty())
    std::printf(", \"rollout_gain_mean\": %.2f, \"rollout_gain_least\": %.2f", sum / lists, least);
  if (lists > 0)
    std::printf(", \"rollout_at_100_least\": %.2f, \"rollout_8gpu_least\": %.2f", least_100,
                least_8gpu);
  std::printf("}\n");
}

int run(const Options& options) {
  const auto start = std::chrono::steady_clock::now();
  const auto nodes = aliquot::replay::read_openb_nodes(
      options.data + "/traces/openb/openb_node_list_gpu_node.csv");
  if (!nodes) return std::fprintf(stderr, "fgd_grid: %s\n", nodes.error().message.c_str()), 1;
  std::map<std::string, std::vector<aliquot::replay::OpenbPod>> pods;
  for (const std::string& list : options.lists) {
    auto read = aliquot::replay::read_openb_pods(options.data + "/traces/openb/openb_pod_list_" +
                                                 list + ".csv");
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

  const Published published = read_published(options.data + "/fgd_published.csv");
  print_table(cells, published);
  const auto seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start);
  print_figures(cells, published, seconds.count());
  return 0;
}

int measured(int argc, char** argv) {
  Options options;
  CLI::App app("The FGD inflation grid (simulated placements of the openb traces)");
  app.add_option("data", options.data, "folder with traces/openb and fgd_published.csv");
  app.add_option("--lists", options.lists)->delimiter(',');
  app.add_option("--policies", options.policies)->delimiter(',');
  app.add_option("--seeds", options.seeds);
  app.add_option("--threads", options.threads);
  app.add_flag("--csv-order", options.csv_order, "nodes as listed instead of permuted");
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
  if (options.data.empty())
    if (const auto found = aliquot::test::shared_data()) options.data = found->string();
  return run(options);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return measured(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
