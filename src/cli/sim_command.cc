#include "cli/sim_command.h"

#include <cmath>
#include <memory>
#include <ostream>

#include "cli/sim_fault_command.h"
#include "cli/sim_root_command.h"
#include "cli/surroundings.h"
#include "cli/table.h"
#include "format/json.h"
#include "model/quantity.h"
#include "simdriver/machine.h"
#include "simdriver/presets.h"

namespace aliquot::cli {
namespace {

using simdriver::MachineSpec;
using simdriver::RunningMachine;

struct UpOptions {
  std::string node, name = "sim", cuda;
  double speed = 0;  // 0: as the node's file says
  bool mps = false;
};

// "0.1 x", "1 x": how fast the machine's time goes.
std::string speed_text(const MachineSpec& spec) {
  std::string text =
      std::to_string(static_cast<double>(spec.time_scale_micro) / simdriver::kRealTime);
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text + " x";
}

Status bring_up(const UpOptions& options, std::ostream& out) {
  const auto simulator = simdriver::simulator_directory();
  if (!simulator) return simulator.error();
  auto spec = simdriver::make_machine({options.node, options.name, options.cuda}, *simulator);
  if (!spec) return spec.error();
  if (options.speed > 0)
    spec->time_scale_micro =
        static_cast<std::uint32_t>(std::lround(options.speed * simdriver::kRealTime));
  spec->mps = spec->mps || options.mps;
  const auto machine = simdriver::start_machine(*spec, *simulator);
  if (!machine) return machine.error();
  out << "simulated machine " << machine->name << ": " << spec->gpus.size() << " x "
      << spec->model_of(0).product << ", driver " << spec->driver.driver;
  if (spec->time_scale_micro != simdriver::kRealTime)
    out << ", in slow motion: its time goes at " << speed_text(*spec);
  out << "\nin a share: aliquot run --sim " << machine->name << " --memory 4GiB -- COMMAND"
      << "\nbare:       LD_LIBRARY_PATH=" << machine->library_directory().string()
      << " COMMAND\nto end it:  aliquot sim down " << machine->name << '\n';
  return {};
}

format::Json to_json(const RunningMachine& machine, const MachineSpec& spec) {
  format::Json gpus = format::Json::array();
  for (unsigned i = 0; i < spec.gpus.size(); ++i)
    gpus.append(format::Json::object()
                    .set("uuid", simdriver::gpu_uuid_text(spec.gpus[i].uuid))
                    .set("model", spec.model_of(i).product)
                    .set("memory_bytes", spec.model_of(i).memory.driver_total_bytes));
  return format::Json::object()
      .set("name", machine.name)
      .set("simulated", true)
      .set("pid", std::int64_t{machine.pid})
      .set("directory", machine.directory.string())
      .set("driver_version", spec.driver.driver)
      .set("time_scale_micro", spec.time_scale_micro)
      .set("gpus", gpus);
}

Status list(bool json, std::ostream& out) {
  const auto machines = simdriver::list_machines();
  if (!machines) return machines.error();
  Table table({{"SIMULATED"},
               {"GPUS", Table::Align::kRight},
               {"MODEL"},
               {"DRIVER"},
               {"SPEED", Table::Align::kRight},
               {"PID", Table::Align::kRight}});
  format::Json all = format::Json::array();
  for (const RunningMachine& machine : *machines) {
    const auto spec = simdriver::read_machine(machine.directory / "machine.json");
    if (!spec) return spec.error();
    all.append(to_json(machine, *spec));
    table.add({machine.name, std::to_string(spec->gpus.size()), spec->model_of(0).product,
               spec->driver.driver, speed_text(*spec), std::to_string(machine.pid)});
  }
  if (json)
    out << all.dump(2) << '\n';
  else if (table.empty())
    out << "no simulated machine runs (start one: aliquot sim up --node a100x8)\n";
  else
    out << table.text();
  return {};
}

// Their programs get errors of a lost device from here on.
void warn_of_leases(const std::string& machine, std::ostream& err) {
  auto broker = running_broker();
  if (!broker) return;
  const auto leases = broker->list();
  if (!leases) return;
  for (const broker::LeaseRow& lease : *leases)
    if (lease.driver == "sim:" + machine)
      err << "aliquot sim down: lease " << lease.name << " still uses machine " << machine
          << "; its programs lose their GPU\n";
}

Status bring_down(const std::string& name, bool all, std::ostream& err) {
  std::vector<std::string> names{name};
  if (all) {
    names.clear();
    const auto machines = simdriver::list_machines();
    if (!machines) return machines.error();
    for (const RunningMachine& machine : *machines) names.push_back(machine.name);
  }
  for (const std::string& machine : names) {
    warn_of_leases(machine, err);
    if (const Status stopped = simdriver::stop_machine(machine); !stopped) return stopped;
  }
  return {};
}

Status list_presets(bool json, std::ostream& out) {
  const auto simulator = simdriver::simulator_directory();
  if (!simulator) return simulator.error();
  const auto names = simdriver::preset_names(*simulator);
  if (!names) return names.error();
  format::Json all = format::Json::array();
  for (const std::string& name : *names) {
    if (json)
      all.append(name);
    else
      out << name << '\n';
  }
  if (json) out << all.dump(2) << '\n';
  return {};
}

void add_up(CLI::App& sim, Invocation& invocation) {
  CLI::App* up = sim.add_subcommand("up", "Start a simulated machine");
  auto options = std::make_shared<UpOptions>();
  up->add_option("--node", options->node, "What it is: a100x8, h100x2, ... or a .json file")
      ->type_name("PRESET|FILE")
      ->required();
  up->add_option("--name", options->name, "What it is called")->capture_default_str();
  up->add_option("--cuda", options->cuda, "CUDA version its driver has (11.8 12.4 12.9 13.0)")
      ->type_name("VERSION");
  up->add_flag("--mps", options->mps,
               "Programs are clients of MPS: side by side instead of in turns");
  up->add_option("--speed", options->speed, "Slow motion: 0.1 is a tenth of real time")
      ->type_name("FACTOR")
      ->check(CLI::Range(0.001, 1.0));
  up->callback([options, &invocation] {
    if (const Status done = bring_up(*options, invocation.out); !done)
      fail(invocation, "sim up", done.error());
  });
}

void add_down(CLI::App& sim, Invocation& invocation) {
  CLI::App* down = sim.add_subcommand("down", "End a simulated machine");
  auto name = std::make_shared<std::string>();
  auto all = std::make_shared<bool>(false);
  auto* named = down->add_option("name", *name, "Its name")->type_name("MACHINE");
  down->add_flag("--all", *all, "All of them")->excludes(named);
  down->callback([name, all, &invocation] {
    if (name->empty() && !*all)
      return fail(invocation, "sim down", {Errc::kInvalid, "which? give a NAME or --all"});
    if (const Status done = bring_down(*name, *all, invocation.err); !done)
      fail(invocation, "sim down", done.error());
  });
}

}  // namespace

void add_sim_command(CLI::App& app, Invocation& invocation) {
  CLI::App* sim = app.add_subcommand("sim", "Simulated machines: try everything without a GPU");
  sim->require_subcommand(1);
  add_up(*sim, invocation);
  add_down(*sim, invocation);
  add_sim_fault(*sim, invocation);
  add_sim_root(*sim, invocation);
  CLI::App* listed = sim->add_subcommand("list", "List the running ones");
  auto json = std::make_shared<bool>(false);
  listed->add_flag("--json", *json, "As JSON");
  listed->callback([json, &invocation] {
    if (const Status done = list(*json, invocation.out); !done)
      fail(invocation, "sim list", done.error());
  });
  CLI::App* presets = sim->add_subcommand("presets", "List the machines that can be started");
  auto presets_json = std::make_shared<bool>(false);
  presets->add_flag("--json", *presets_json, "As JSON");
  presets->callback([presets_json, &invocation] {
    if (const Status done = list_presets(*presets_json, invocation.out); !done)
      fail(invocation, "sim presets", done.error());
  });
}

}  // namespace aliquot::cli
