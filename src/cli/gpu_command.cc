#include "cli/gpu_command.h"

#include <memory>
#include <ostream>

#include "cli/compute_options.h"
#include "cli/surroundings.h"
#include "cli/table.h"
#include "format/json.h"
#include "model/quantity.h"

namespace aliquot::cli {
namespace {

using broker::GpuSettings;
using format::Json;

struct GpuOptions {
  std::string sim, gpu;
  std::optional<std::string> policy, release, on_bypass, overcommit;
  std::optional<std::uint32_t> max_inst, prio_ratio;
  bool json = false;
};

Result<broker::GpuChange> change_of(const GpuOptions& options) {
  broker::GpuChange change;
  change.gpu = options.gpu;
  change.max_inst = options.max_inst;
  change.prio_ratio = options.prio_ratio;
  if (options.policy) {
    const auto policy = parse_policy(*options.policy);
    if (!policy) return policy.error();
    change.policy = *policy;
  }
  if (options.on_bypass) {
    const auto action = parse_on_bypass(*options.on_bypass);
    if (!action) return action.error();
    change.on_bypass = *action;
  }
  if (options.release) {
    change.release_auto = *options.release == "auto";
    if (!*change.release_auto) {
      const auto time = parse_time(*options.release);
      if (!time) return time.error();
      change.release_ns = *time;
    }
  }
  if (options.overcommit) {
    const auto most = parse_overcommit(*options.overcommit);
    if (!most) return most.error();
    change.most_cores = *most;
  }
  return change;
}

std::string release_text(const GpuSettings& gpu) {
  return gpu.release_auto ? "auto" : time_text(gpu.release_ns);
}

Json settings_json(const GpuSettings& gpu) {
  return Json::object()
      .set("index", std::int64_t{gpu.index})
      .set("uuid", gpu.uuid)
      .set("policy", policy_text(gpu.policy))
      .set("policy_number", std::uint64_t{static_cast<std::uint32_t>(gpu.policy)})
      .set("max_inst", std::uint64_t{gpu.max_inst})
      .set("prio_ratio", std::uint64_t{gpu.prio_ratio})
      .set("release_ns", gpu.release_auto ? Json() : Json(gpu.release_ns))
      .set("most_cores_percent", gpu.most_cores / 100.0)
      .set("on_bypass", on_bypass_text(gpu.on_bypass));
}

std::string settings_table(const std::vector<GpuSettings>& gpus) {
  const auto right = Table::Align::kRight;
  Table table({{"GPU", right},
               {"POLICY"},
               {"MAX-INST", right},
               {"PRIO-RATIO", right},
               {"RELEASE", right},
               {"GUARANTEES", right},
               {"ON-BYPASS"}});
  for (const GpuSettings& gpu : gpus)
    table.add({std::to_string(gpu.index), std::string(policy_text(gpu.policy)),
               std::to_string(gpu.max_inst),
               gpu.prio_ratio == 0 ? "-" : std::to_string(gpu.prio_ratio) + "%", release_text(gpu),
               "<=" + model::cores_text(gpu.most_cores),
               std::string(on_bypass_text(gpu.on_bypass))});
  return table.text();
}

Status show(const GpuOptions& options, const inventory::Driver& driver, broker::Client& broker,
            std::ostream& out) {
  auto gpus = broker.gpus(driver.name);
  if (!gpus) return gpus.error();
  if (!options.gpu.empty()) {
    std::erase_if(*gpus, [&](const GpuSettings& gpu) {
      return gpu.uuid != options.gpu && std::to_string(gpu.index) != options.gpu;
    });
    if (gpus->empty())
      return Error{Errc::kNotFound, "find gpu " + options.gpu + ": " + driver.title() +
                                        " has none of that index or UUID"};
  }
  if (!options.json) {
    out << settings_table(*gpus);
    return {};
  }
  Json rows = Json::array();
  for (const GpuSettings& gpu : *gpus) rows.append(settings_json(gpu));
  out << Json::object()
             .set("driver", driver.name)
             .set("simulated", driver.simulated())
             .set("gpus", rows)
             .dump(2)
      << '\n';
  return {};
}

Status set_or_get(const GpuOptions& options, bool set, std::ostream& out) {
  auto change = change_of(options);
  if (!change) return change.error();
  const auto driver = inventory::choose_driver(driver_question(options.sim));
  if (!driver) return driver.error();
  auto broker = broker_for(*driver);
  if (!broker) return broker.error();
  if (set) {
    change->driver = driver->name;
    if (const Status done = broker->set_gpu(*change); !done) return done;
  }
  return show(options, *driver, *broker, out);
}

}  // namespace

void add_gpu_command(CLI::App& app, Invocation& invocation) {
  CLI::App* gpu = app.add_subcommand("gpu", "See or change how GPUs are shared");
  gpu->require_subcommand(1);
  const auto run = [&invocation](const GpuOptions& options, bool set) {
    const Status done = set_or_get(options, set, invocation.out);
    if (done) return;
    fail(invocation, set ? "gpu set" : "gpu get", done.error());
    if (done.error().code == Errc::kInvalid) invocation.status = kUsageError;
  };

  CLI::App* set = gpu->add_subcommand("set", "Change it; in force when the command returns");
  auto options = std::make_shared<GpuOptions>();
  set->add_option("gpu", options->gpu, "Index in PCI order, or UUID")->required();
  set->add_option("--sim", options->sim, "Running simulated machine");
  set->add_option(
      "--policy", options->policy,
      "0 fair, 1 preemptive, 2 weighted, 3 fixed, 4 soft, 5 native, burst, best-effort");
  set->add_option("--max-inst", options->max_inst, "Units that the GPU is cut into, 1 to 25");
  set->add_option("--prio-ratio", options->prio_ratio,
                  "Percent that online leases get, 20 to 99; 0: everything");
  set->add_option("--release", options->release,
                  "Of online idleness until offline leases go on (100ms, auto)");
  set->add_option("--overcommit", options->overcommit,
                  "Guarantees may sum up to this (100 unless set)")
      ->type_name("PERCENT");
  set->add_option("--on-bypass", options->on_bypass,
                  "With work that passes the gate by: report, ban, stop, end");
  set->callback([options, run] { run(*options, true); });

  CLI::App* get = gpu->add_subcommand("get", "Show it");
  auto shown = std::make_shared<GpuOptions>();
  get->add_option("gpu", shown->gpu, "Index in PCI order, or UUID; all unless given");
  get->add_option("--sim", shown->sim, "Running simulated machine");
  get->add_flag("--json", shown->json, "As JSON");
  get->callback([shown, run] { run(*shown, false); });
}

}  // namespace aliquot::cli
