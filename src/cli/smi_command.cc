#include "cli/smi_command.h"

#include <algorithm>
#include <memory>
#include <ostream>

#include "cli/smi_parts_command.h"
#include "cli/smi_source.h"
#include "cli/smi_view.h"
#include "cli/surroundings.h"
#include "inventory/driver_look.h"

namespace aliquot::cli {
namespace {

struct SmiOptions {
  std::string sim, query, format = "csv";
  bool list = false;
  bool json = false;
  bool fields = false;
};

Result<SmiMachine> look(const SmiSource& source) {
  auto answer =
      inventory::look_at_driver([&source] { return inventory::open_nvml(source.libnvidia_ml); });
  if (!answer) return answer.error();
  return SmiMachine{std::move(answer->system), source.title, std::move(answer->gpus)};
}

// Of this user's broker, on these GPUs; where none answers there are none to show.
std::vector<broker::LeaseRow> leases_on(const SmiMachine& machine) {
  auto broker = running_broker();
  if (!broker) return {};
  auto rows = broker->list();
  if (!rows) return {};
  std::erase_if(*rows, [&](const broker::LeaseRow& lease) {
    return std::ranges::none_of(machine.gpus, [&](const SmiGpu& gpu) {
      return std::ranges::find(lease.gpus, gpu.gpu.uuid, &broker::UsageRow::uuid) !=
             lease.gpus.end();
    });
  });
  return *std::move(rows);
}

Status show(const SmiOptions& options, std::ostream& out) {
  const auto format = parse_csv_format(options.format);
  if (!format) return format.error();
  const auto source = smi_source(options.sim);
  if (!source) return source.error();
  auto machine = look(*source);
  if (!machine) return machine.error();
  machine->leases = leases_on(*machine);
  if (!options.query.empty()) {
    const auto text = smi_query(*machine, options.query, *format);
    if (!text) return text.error();
    out << *text;
  } else if (options.json) {
    out << smi_json(*machine) << '\n';
  } else {
    out << (options.list ? smi_list(*machine) : smi_table(*machine));
  }
  return {};
}

}  // namespace

void add_smi_command(CLI::App& app, Invocation& invocation) {
  CLI::App* smi = app.add_subcommand("smi", "Show the GPUs, or the share that this is");
  auto options = std::make_shared<SmiOptions>();
  smi->add_option("--sim", options->sim, "Running simulated machine")->type_name("MACHINE");
  smi->add_flag("-L,--list-gpus", options->list, "One line per GPU");
  smi->add_option("--query-gpu", options->query, "These fields, as nvidia-smi names them")
      ->type_name("FIELD,...");
  smi->add_option("--format", options->format, "csv[,noheader][,nounits]")->capture_default_str();
  smi->add_flag("--json", options->json, "As JSON");
  smi->add_flag("--help-query-gpu", options->fields, "List the fields");
  add_smi_parts(*smi, invocation, [options] { return smi_source(options->sim); });
  smi->callback([smi, options, &invocation] {
    if (!smi->get_subcommands().empty()) return;
    if (options->fields) {
      for (const std::string& name : smi_fields()) invocation.out << name << '\n';
      return;
    }
    if (const Status shown = show(*options, invocation.out); !shown)
      fail(invocation, "smi", shown.error());
  });
}

}  // namespace aliquot::cli
