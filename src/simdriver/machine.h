// Simulated machines as things that run: begin one, list those that run, end one. Each has a
// directory <state>/sim/NAME: machine.json (what it is), pid, socket (the device server's), log,
// lib/ with the libraries that programs load, sys/ and proc/ (host_tree.h).
//
// For the command line and tests; one thread at a time. What a machine is made of: presets.h.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

#include "common/result.h"
#include "simdriver/machine_spec.h"

namespace aliquot::simdriver {

struct RunningMachine {
  std::string name;
  std::filesystem::path directory;
  pid_t pid = 0;  // of its device server
  std::filesystem::path library_directory() const { return directory / "lib"; }
};

std::filesystem::path machine_directory(const std::string& name);

// Lays out the directory and runs the device server in a child that outlives the caller's session;
// returns when the server answers. `libraries` holds the built libcuda.so.1 and libnvidia-ml.so.1
// (simulator_directory() of presets.h); a library that is not there is left out. A machine of that
// name that runs already is an error.
Result<RunningMachine> start_machine(const MachineSpec& spec,
                                     const std::filesystem::path& libraries);

// The two steps of start_machine apart: for callers that keep the server as their own child.
Status lay_out_machine(const MachineSpec& spec, const std::filesystem::path& libraries);
// Serves the machine laid out in `directory` until stop_machine or SIGTERM.
Status serve_machine(const std::filesystem::path& directory);

// Sorted by name. Left-overs of machines that were killed are not listed.
Result<std::vector<RunningMachine>> list_machines();

// Ends the server and removes the directory; programs that use it get errors from then on.
Status stop_machine(const std::string& name);

}  // namespace aliquot::simdriver
