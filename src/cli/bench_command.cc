#include "cli/bench_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <ostream>

#include "cli/share_cells.h"
#include "cli/surroundings.h"
#include "cli/table.h"
#include "format/json.h"
#include "simdriver/presets.h"

namespace aliquot::cli {
namespace {

constexpr int kInvalidRun = 2;  // the host was too slow for any of it to count

struct SharesOptions {
  std::string sim, set = "real", event = "none";
  std::vector<std::string> cells;
  unsigned gpu = 0;
  double seconds = 10;
  bool json = false, list = false;
};

std::vector<std::string> chosen(const SharesOptions& options) {
  if (!options.cells.empty()) return options.cells;
  return options.set == "slow" ? slow_motion_cells() : real_time_cells();
}

// Real nanoseconds for one of the machine's.
Result<double> slowness_of(const inventory::Driver& driver) {
  if (!driver.simulated()) return 1.0;
  const auto spec = simdriver::read_machine(driver.machine_directory / "machine.json");
  if (!spec) return spec.error();
  return static_cast<double>(simdriver::kRealTime) / spec->time_scale_micro;
}

format::Json json_of(const MeasuredCell& cell, const std::optional<replay::CellResult>& twin) {
  format::Json tenants = format::Json::array();
  for (std::size_t i = 0; i < cell.shares.size(); ++i)
    tenants.append(format::Json::object()
                       .set("target_percent", cell.targets[i])
                       .set("share_percent", cell.shares[i]));
  format::Json twins;
  if (twin)
    twins = format::Json::object()
                .set("mean_error_points", twin->mean_error)
                .set("worst_error_points", twin->worst_error)
                .set("busy_percent", twin->busy_percent)
                .set("largest_lag_ms", twin->largest_lag_ms);
  return format::Json::object()
      .set("cell", cell.name)
      .set("tenants", std::move(tenants))
      .set("mean_error_points", cell.mean_error)
      .set("worst_error_points", cell.worst_error)
      .set("busy_percent", cell.busy_percent)
      .set("largest_lag_ms", cell.largest_lag_ms)
      .set("allowed_lag_ms", cell.allowed_lag_ms)
      .set("wake_p99_us", cell.wake_p99_us)
      .set("valid", cell.valid)
      .set("twin", std::move(twins));
}

struct Measured {
  MeasuredCell cell;
  std::optional<replay::CellResult> twin;  // of a cell to which nothing happens
};

const std::map<std::string, CellEvent> kEvents = {{"none", CellEvent::kNone},
                                                  {"arrival", CellEvent::kArrival},
                                                  {"leave", CellEvent::kLeave},
                                                  {"resize", CellEvent::kResize}};

format::Json summary_of(const std::vector<Measured>& all, const CellMachine& where) {
  double mean = 0, worst = 0, busy = 100;
  bool valid = !all.empty();
  format::Json cells = format::Json::array();
  for (const Measured& one : all) {
    mean += one.cell.mean_error / static_cast<double>(all.size());
    worst = std::max(worst, one.cell.worst_error);
    busy = std::min(busy, one.cell.busy_percent);
    valid = valid && one.cell.valid;
    cells.append(json_of(one.cell, one.twin));
  }
  return format::Json::object()
      .set("bench", "shares")
      .set("simulated", !where.simulated.empty())
      .set("speed", 1 / where.slowness)
      .set("mean_error_points", mean)
      .set("worst_error_points", worst)
      .set("least_busy_percent", busy)
      .set("valid", valid)
      .set("cells", std::move(cells));
}

std::string table_of(const std::vector<Measured>& all) {
  using enum Table::Align;
  Table table({{"CELL"},
               {"MEAN", kRight},
               {"WORST", kRight},
               {"BUSY", kRight},
               {"LAG", kRight},
               {"TWIN", kRight},
               {"WORST", kRight},
               {"BUSY", kRight},
               {"LAG", kRight},
               {"WAKE P99", kRight},
               {"VALID"}});
  const auto add_figures = [](std::vector<std::string>& row, const auto& of) {
    row.insert(
        row.end(),
        {fmt::format("{:.2f}", of.mean_error), fmt::format("{:.2f}", of.worst_error),
         fmt::format("{:.1f}%", of.busy_percent), fmt::format("{:.0f}ms", of.largest_lag_ms)});
  };
  for (const auto& [cell, twin] : all) {
    std::vector<std::string> row{cell.name};
    add_figures(row, cell);
    if (twin)
      add_figures(row, *twin);
    else
      row.insert(row.end(), 4, "-");
    row.push_back(fmt::format("{:.0f}us", cell.wake_p99_us));
    row.push_back(cell.valid ? "yes" : "no");
    table.add(std::move(row));
  }
  return table.text();
}

Status run_shares(const SharesOptions& options, Invocation& invocation) {
  if (options.list) {
    for (const replay::GateCell& cell : replay::gate_matrix()) invocation.out << cell.name << '\n';
    return {};
  }
  std::vector<replay::GateCell> cells;
  for (const std::string& name : chosen(options)) {
    auto cell = cell_called(name);
    if (!cell) return cell.error();
    cells.push_back(std::move(*cell));
  }
  const auto program = own_program();
  if (!program) return program.error();
  const auto driver = inventory::choose_driver(driver_question(options.sim));
  if (!driver) return driver.error();
  const auto slowness = slowness_of(*driver);
  if (!slowness) return slowness.error();
  const auto account = account_of(*driver, options.gpu);
  if (!account) return account.error();
  const CellMachine where{.account = **account,
                          .simulated = driver->machine_directory.filename().string(),
                          .gpu = options.gpu,
                          .slowness = *slowness};
  const CellEvent event = kEvents.at(options.event);
  std::vector<Measured> all;
  for (const replay::GateCell& cell : cells) {
    const auto time = static_cast<Nanoseconds>(options.seconds * kSecond);
    auto measured = measure_cell(*program, where, cell, event, time);
    if (!measured) return measured.error();
    all.push_back({std::move(*measured), std::nullopt});
    replay::TwinOptions twin;
    twin.duration = twin.warmup + time;
    if (event == CellEvent::kNone) all.back().twin = replay::run_cell(cell, twin);
    if (!options.json) invocation.err << "aliquot bench shares: " << cell.name << " done\n";
  }
  if (options.json)
    invocation.out << summary_of(all, where).dump() << '\n';
  else
    invocation.out << "Points of share against the account of " << driver->title() << ".\n"
                   << table_of(all);
  if (std::ranges::any_of(all, [](const Measured& one) { return !one.cell.valid; }))
    invocation.status = kInvalidRun;
  return {};
}

}  // namespace

void add_bench_command(CLI::App& app, Invocation& invocation) {
  CLI::App* bench = app.add_subcommand("bench", "Measure what this installation does");
  bench->require_subcommand(1);
  CLI::App* shares = bench->add_subcommand(
      "shares", "Programs in their shares of a GPU, against the device's own account");
  auto options = std::make_shared<SharesOptions>();
  shares->add_option("--sim", options->sim, "Running simulated machine");
  shares->add_option("--gpu", options->gpu, "GPU index")->capture_default_str();
  shares->add_option("--set", options->set, "Cells: real (12) or slow (24, for slow motion)")
      ->check(CLI::IsMember({"real", "slow"}))
      ->capture_default_str();
  shares->add_option("--cell", options->cells, "Only these cells")->type_name("NAME");
  shares
      ->add_option("--event", options->event,
                   "To the first tenant when all are at work (a resize is to a third)")
      ->check(CLI::IsMember(kEvents))
      ->capture_default_str();
  shares->add_option("--seconds", options->seconds, "Of the machine's time, each cell")
      ->check(CLI::Range(0.1, 3600.0))
      ->capture_default_str();
  shares->add_flag("--list", options->list, "Name all cells");
  shares->add_flag("--json", options->json, "As JSON");
  shares->callback([options, &invocation] {
    if (const Status done = run_shares(*options, invocation); !done)
      fail(invocation, "bench shares", done.error());
  });
}

}  // namespace aliquot::cli
