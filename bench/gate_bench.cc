// The compute gate's share matrix in virtual time. Prints one JSON object: a row per cell and the
// aggregates. gate_bench [named|all] [seed]; "all" (405 cells of 10 s) takes a few minutes.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

#include "replay/gate_cells.h"

namespace {

using namespace aliquot::replay;

struct Aggregate {
  int cells = 0;
  double error = 0;
  double worst = 0;
  double busy = 0;
  double least_busy = 200;
  double wait_ms = 0;
  double lag_ms = 0;
};

void add(Aggregate& sum, const CellResult& result) {
  ++sum.cells;
  sum.error += result.mean_error;
  sum.worst = std::max(sum.worst, result.worst_error);
  sum.busy += result.busy_percent;
  sum.least_busy = std::min(sum.least_busy, result.busy_percent);
  sum.wait_ms = std::max(sum.wait_ms, result.longest_wait_ms);
  sum.lag_ms = std::max(sum.lag_ms, result.largest_lag_ms);
}

}  // namespace

int main(int argc, char** argv) {
  const bool all = argc > 1 && std::strcmp(argv[1], "all") == 0;
  TwinOptions options;
  if (argc > 2) options.seed = std::strtoull(argv[2], nullptr, 10);
  std::map<std::string, Aggregate> sums;
  std::printf("{\"bench\": \"gate\", \"simulated\": true, \"cells\": [\n");
  bool first = true;
  for (const GateCell& cell : all ? gate_matrix() : named_gate_cells()) {
    const CellResult result = run_cell(cell, options);
    std::printf(
        "%s {\"cell\": \"%s\", \"mean_error\": %.3f, \"worst_error\": %.3f, \"busy\": %.2f, "
        "\"wait_ms\": %.0f, \"lag_ms\": %.1f, \"steps_per_s\": %.0f}",
        first ? "" : ",\n", cell.name.c_str(), result.mean_error, result.worst_error,
        result.busy_percent, result.longest_wait_ms, result.largest_lag_ms,
        result.steps_per_second);
    std::fflush(stdout);
    first = false;
    for (const std::string& key :
         {std::string("all"), "kernel " + cell.kernel, "tenants " + std::to_string(cell.tenants)}) {
      add(sums[key], result);
    }
  }
  std::printf("\n], \"sums\": {\n");
  first = true;
  for (const auto& [key, sum] : sums) {
    std::printf(
        "%s \"%s\": {\"cells\": %d, \"mean_error\": %.3f, \"worst_error\": %.3f, \"busy\": %.2f, "
        "\"least_busy\": %.2f, \"wait_ms\": %.0f, \"lag_ms\": %.1f}",
        first ? "" : ",\n", key.c_str(), sum.cells, sum.error / sum.cells, sum.worst,
        sum.busy / sum.cells, sum.least_busy, sum.wait_ms, sum.lag_ms);
    first = false;
  }
  std::printf("\n}}\n");
  return 0;
}
