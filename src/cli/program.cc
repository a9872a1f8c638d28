#include "cli/program.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <ostream>

#include "cli/abi_command.h"
#include "cli/bench_command.h"
#include "cli/broker_command.h"
#include "cli/burn_command.h"
#include "cli/completion_command.h"
#include "cli/doctor_command.h"
#include "cli/gpu_command.h"
#include "cli/inventory_command.h"
#include "cli/ps_command.h"
#include "cli/replay_command.h"
#include "cli/run_command.h"
#include "cli/share_command.h"
#include "cli/sim_command.h"
#include "cli/smi_command.h"
#include "cli/smi_parts_command.h"
#include "cli/top_command.h"
#include "cli/topo_command.h"

namespace aliquot::cli {
namespace {

// Every command there is, in the order in which help shows them.
constexpr std::array kCommands{
    &add_run_command,    &add_ps_command,   &add_top_command,       &add_share_command,
    &add_gpu_command,    &add_smi_command,  &add_sim_command,       &add_burn_command,
    &add_bench_command,  &add_topo_command, &add_inventory_command, &add_doctor_command,
    &add_replay_command, &add_abi_command,  &add_broker_command,    &add_completion_command,
};

}  // namespace

void fail(Invocation& invocation, std::string_view command, const Error& error) {
  invocation.err << "aliquot " << command << ": " << error.message << '\n';
  invocation.status = 1;
}

void add_commands(CLI::App& app, Invocation& invocation) {
  app.name("aliquot");
  app.description("Shares GPUs: hard memory limits, placement by topology, simulated machines.");
  app.set_version_flag("--version", ALIQUOT_VERSION);
  app.require_subcommand(1);
  for (const AddCommand add : kCommands) add(app, invocation);
}

int run_program(Invocation& invocation) {
  CLI::App app;
  add_commands(app, invocation);
  auto& arguments = invocation.arguments;
  // In a driver root the program stands as nvidia-smi.
  if (std::filesystem::path(arguments[0]).filename() == "nvidia-smi")
    arguments.insert(arguments.begin() + 1, "smi");
  spell_out_smi_words(arguments);
  // `run` ends its options at the first word that is none (prefix_command), which CLI11 does not do
  // after a "--"; so that one, which only says the same, is left out.
  if (arguments.size() > 1 && arguments[1] == "run")
    if (const auto mark = std::ranges::find(arguments, "--"); mark != arguments.end())
      arguments.erase(mark);
  // CLI11 takes the words last first, without the program's name.
  std::vector<std::string> words(invocation.arguments.rbegin(), invocation.arguments.rend() - 1);
  // CLI11 would only say that a command is missing.
  const auto named = [&](const CLI::App* sub) { return sub->check_name(words.back()); };
  if (!words.empty() && !words.back().starts_with('-') && app.get_subcommands(named).empty()) {
    invocation.err << "aliquot: there is no command \"" << words.back()
                   << "\" (see aliquot --help)\n";
    return kUsageError;
  }
  try {
    app.parse(std::move(words));
  } catch (const CLI::Success& asked) {  // --help, --version
    return app.exit(asked, invocation.out, invocation.err);
  } catch (const CLI::ParseError& error) {
    invocation.err << "aliquot: " << error.what() << " (see aliquot --help)\n";
    return kUsageError;
  }
  return invocation.status;
}

}  // namespace aliquot::cli
