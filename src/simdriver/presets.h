// Ready-made machines: JSON files of nodes and of the models they are made of, found beside the
// simulated driver's libraries. Any thread.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "common/result.h"
#include "simdriver/machine_spec.h"

namespace aliquot::simdriver {

struct MachineRequest {
  std::string node;  // "a100x8", "h20x4" (any count up to 64), "a100", or a path to a .json file
  std::string name;  // of the machine; its GPUs' UUIDs follow from it
  std::string cuda;  // "12.4"; empty: what the node's file says, else 13.0
};

// Where this build keeps presets/, models/ and the simulated libraries: ../lib/aliquot/sim beside
// the running program.
Result<std::filesystem::path> simulator_directory();

// The machine, complete: every GPU has its UUID, serial and minor.
Result<MachineSpec> make_machine(const MachineRequest& request,
                                 const std::filesystem::path& simulator);

// The same machine, whose driver's calls cost their callers nothing but what the simulator itself
// needs: for measuring that, and for tests that are about something else.
MachineSpec with_free_calls(MachineSpec machine);

// Reads what to_json(MachineSpec) wrote: a machine that is already complete.
Result<MachineSpec> read_machine(const std::filesystem::path& file);

// Sorted. An error where the directory cannot be read.
Result<std::vector<std::string>> preset_names(const std::filesystem::path& simulator);

}  // namespace aliquot::simdriver
