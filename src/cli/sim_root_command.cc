#include "cli/sim_root_command.h"

#include <algorithm>
#include <memory>
#include <ostream>

#include "cli/surroundings.h"
#include "simdriver/driver_root.h"

namespace aliquot::cli {
namespace {

struct RootOptions {
  std::string machine, directory;
};

Status lay_out(const RootOptions& options, Invocation& invocation) {
  const auto machines = simdriver::list_machines();
  if (!machines) return machines.error();
  const auto found =
      std::ranges::find(*machines, options.machine, &simdriver::RunningMachine::name);
  if (found == machines->end())
    return Error{Errc::kNotFound, "no simulated machine " + options.machine +
                                      " runs; `aliquot sim list` shows those that do"};
  const auto program = own_program();
  if (!program) return program.error();
  const auto root = simdriver::lay_out_driver_root(*found, *program, options.directory);
  if (!root) return root.error();
  invocation.out << "driver root of simulated machine " << options.machine << ": "
                 << options.directory << "\nGPUs:       " << options.directory
                 << "/usr/bin/nvidia-smi -L\nCDI:        nvidia-ctk cdi generate --mode=nvml "
                    "--driver-root="
                 << options.directory << '\n';
  if (!root->why_no_device_nodes.empty())
    invocation.err << "aliquot sim root: no device nodes in " << options.directory
                   << "/dev: " << root->why_no_device_nodes
                   << " (making them needs root; without them CDI tools find no GPU)\n";
  return {};
}

}  // namespace

void add_sim_root(CLI::App& sim, Invocation& invocation) {
  CLI::App* root = sim.add_subcommand("root", "Lay out its driver's files in a directory");
  auto options = std::make_shared<RootOptions>();
  root->add_option("name", options->machine, "The machine's name")
      ->required()
      ->type_name("MACHINE");
  root->add_option("directory", options->directory, "A new directory, or a root made before")
      ->required()
      ->type_name("DIR");
  root->callback([options, &invocation] {
    if (const Status done = lay_out(*options, invocation); !done)
      fail(invocation, "sim root", done.error());
  });
}

}  // namespace aliquot::cli
