// A driver root: the files of an installed driver, laid out in a directory for those that look for
// them there (container tool kits, CDI generators, mounts into containers). They belong to a
// simulated machine that runs:
//   usr/lib/x86_64-linux-gnu/  libcuda and libnvidia-ml, .so, .so.1 and .so.VERSION
//   usr/lib/socket, machine.json   links to the machine's, where its libraries look for them
//   usr/bin/nvidia-smi         the given program
//   dev/                       nvidiaN, nvidiactl, nvidia-uvm, nvidia-uvm-tools; no driver is
//                              behind them, opening one fails
//   proc/driver/nvidia/        version, params, gpus/BUS/information
//
// Leaves to others: starting the machine, mounting the root anywhere. One thread.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "common/result.h"
#include "simdriver/machine.h"

namespace aliquot::simdriver {

struct DriverRoot {
  unsigned device_nodes = 0;
  std::string why_no_device_nodes;  // empty: they are all there
};

// `smi` is copied to usr/bin/nvidia-smi. A directory with other contents is refused; a root laid
// out before is replaced.
Result<DriverRoot> lay_out_driver_root(const RunningMachine& machine,
                                       const std::filesystem::path& smi,
                                       const std::filesystem::path& directory);

// The machine's name, library and description where `program` is the nvidia-smi of a driver root;
// the machine may be gone.
struct RootMachine {
  std::string name;
  std::filesystem::path libnvidia_ml;
  std::filesystem::path machine_json;
};
std::optional<RootMachine> machine_of_root(const std::filesystem::path& program);

}  // namespace aliquot::simdriver
