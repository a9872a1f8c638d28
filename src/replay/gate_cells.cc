#include "replay/gate_cells.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace aliquot::replay {
namespace {

enum class Shape { kPlain, kFourStreams, kTwoProcesses };

struct ShareVector {
  const char* name;
  std::vector<double> percent;
};

std::vector<ShareVector> share_vectors() {
  return {{"n2-even", {50, 50}},
          {"n2-30-70", {30, 70}},
          {"n2-5-95", {5, 95}},
          {"n4-even", {25, 25, 25, 25}},
          {"n4-skewed", {5, 10, 25, 60}},
          {"n8-even", std::vector<double>(8, 12.5)},
          {"n8-skewed", {5, 5, 5, 10, 10, 15, 20, 30}},
          {"n16-even", std::vector<double>(16, 6.25)},
          {"n16-skewed", {5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 10, 20}}};
}

constexpr const char* kKernels[] = {"5us",    "50us",    "500us",  "5ms",   "50ms",
                                    "mix5us", "mix50us", "pareto", "hetero"};
constexpr Nanoseconds kLengths[] = {5 * kMicrosecond, 50 * kMicrosecond, 500 * kMicrosecond,
                                    5 * kMillisecond, 50 * kMillisecond};

KernelMix one_length(Nanoseconds duration) { return {.classes = {{duration, 1.0}}}; }

KernelMix mix_of(std::size_t kernel, std::size_t tenant) {
  switch (kernel) {
    case 5:
      return {
          .classes = {
              {kLengths[0], 0.6}, {kLengths[1], 0.3}, {kLengths[2], 0.08}, {kLengths[3], 0.02}}};
    case 6:
      return {
          .classes = {
              {kLengths[1], 0.7}, {kLengths[2], 0.2}, {kLengths[3], 0.08}, {kLengths[4], 0.02}}};
    case 7:
      return {.classes = {{300 * kMicrosecond, 1.0}}, .pareto = true};
    case 8: {
      KernelMix mix = one_length(kLengths[tenant % 4]);
      mix.sigma = 0.3;
      return mix;
    }
    default:
      return one_length(kLengths[kernel]);
  }
}

GateCell cell_of(const ShareVector& shares, std::size_t kernel, int depth, Shape shape) {
  constexpr const char* kShapes[] = {"plain", "streams4", "processes2"};
  GateCell cell;
  cell.name = std::string(shares.name) + "/k" + kKernels[kernel] + "/d" + std::to_string(depth) +
              "/" + kShapes[static_cast<int>(shape)];
  cell.tenants = shares.percent.size();
  cell.kernel = kKernels[kernel];
  cell.shares = shares.percent;
  for (std::size_t i = 0; i < shares.percent.size(); ++i) {
    TwinTenant tenant;
    tenant.terms.cores_percent = shares.percent[i];
    tenant.depth = depth;
    tenant.mix = mix_of(kernel, i);
    if (shape == Shape::kFourStreams) {
      tenant.threads = 4;
      tenant.width_eighths = 4;
      tenant.depth = 16;
    } else if (shape == Shape::kTwoProcesses) {
      tenant.processes = 2;
      tenant.depth = 32;
    }
    cell.specs.push_back(std::move(tenant));
  }
  return cell;
}

}  // namespace

std::vector<GateCell> gate_matrix() {
  std::vector<GateCell> cells;
  for (const ShareVector& shares : share_vectors()) {
    for (std::size_t kernel = 0; kernel < std::size(kKernels); ++kernel) {
      for (const int depth : {4, 64, 1000}) {
        cells.push_back(cell_of(shares, kernel, depth, Shape::kPlain));
      }
      cells.push_back(cell_of(shares, kernel, 64, Shape::kFourStreams));
      cells.push_back(cell_of(shares, kernel, 64, Shape::kTwoProcesses));
    }
  }
  return cells;
}

std::vector<GateCell> named_gate_cells() {
  const std::vector<GateCell> all = gate_matrix();
  std::vector<GateCell> named;
  // Of each two kernels of a share vector one, with the five depths and shapes in turn.
  for (std::size_t i = 0; i < 40; ++i) named.push_back(all[i * 10 + i * 3 % 5]);
  return named;
}

GateCell under_policy(const GateCell& cell, gate::Policy policy) {
  GateCell other = cell;
  const bool weighted = policy == gate::Policy::kSoft;
  other.name = (weighted ? "soft/" : "best-effort/") + cell.name;
  double weights = 0;
  for (TwinTenant& tenant : other.specs) {
    const double weight = weighted ? std::round(tenant.terms.cores_percent / 5) : 1;
    tenant.terms.weight = static_cast<std::uint32_t>(weight);
    tenant.terms.cores_percent = 0;
    weights += weight;
  }
  for (std::size_t i = 0; i < other.shares.size(); ++i)
    other.shares[i] = 100 * other.specs[i].terms.weight / weights;
  return other;
}

double largest_lag(const std::vector<double>& had, const std::vector<double>& percent) {
  const double all = std::accumulate(had.begin(), had.end(), 0.0);
  double largest = 0;
  for (std::size_t i = 0; i < had.size(); ++i)
    largest = std::max(largest, std::abs(had[i] - percent[i] / 100 * all));
  return largest;
}

double allowed_lag_ms(const GateCell& cell) {
  struct Kernel {
    const char* name;
    double longest_ms;
    bool
        foretold;  // the end of one; else its tenant must drain first, in windows half as long more
  };
  // hetero: 5 ms with a spread of 0.3; three times that is rare enough.
  constexpr Kernel kKinds[] = {
      {"5us", 0.005, true},   {"50us", 0.05, true},  {"500us", 0.5, true},
      {"5ms", 5, true},       {"50ms", 50, true},    {"mix5us", 5, false},
      {"mix50us", 50, false}, {"pareto", 50, false}, {"hetero", 15, false}};
  const Kernel& kernel =
      *std::ranges::find(kKinds, std::string_view(cell.kernel),
                         [](const Kernel& one) { return std::string_view(one.name); });
  const bool foretold = kernel.foretold && !cell.name.ends_with("processes2");
  return 2 * std::max(foretold ? 11.0 : 15.0, kernel.longest_ms) + 3 * kernel.longest_ms;
}

CellResult run_cell(const GateCell& cell, const TwinOptions& options) {
  GateTwin twin(options, cell.specs);
  twin.run();
  CellResult result;
  for (std::size_t i = 0; i < cell.shares.size(); ++i) {
    const double error = std::abs(twin.share(i) - cell.shares[i]);
    result.mean_error += error / static_cast<double>(cell.shares.size());
    result.worst_error = std::max(result.worst_error, error);
    result.longest_wait_ms =
        std::max(result.longest_wait_ms, static_cast<double>(twin.longest_wait(i)) / 1e6);
  }
  result.busy_percent = twin.busy_percent();
  const auto first = static_cast<std::size_t>(options.warmup / (10 * kMillisecond));
  for (std::size_t at = first; at < twin.samples(0).size(); ++at) {
    std::vector<double> had;
    for (std::size_t i = 0; i < cell.shares.size(); ++i)
      had.push_back(twin.samples(i)[at] - twin.samples(i)[first]);
    result.largest_lag_ms = std::max(result.largest_lag_ms, largest_lag(had, cell.shares));
  }
  result.steps_per_second =
      static_cast<double>(twin.broker_steps()) / (static_cast<double>(options.duration) / 1e9);
  return result;
}

}  // namespace aliquot::replay
