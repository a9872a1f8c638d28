// The /sys and /proc of a simulated machine: what tools find of its GPUs and NICs without a driver.
//
// Written into the machine's directory beside its libraries: PCI devices below bridges that give
// the distances of the machine's matrices, NUMA nodes, InfiniBand devices, kernel modules, the
// driver's version. Figures that no real machine's data gives (memory of a NUMA node, a link rate
// of NICs, payload sizes) are assumed; docs/simulated-machine.md lists them. Any thread.
#pragma once

#include <filesystem>

#include "common/result.h"
#include "simdriver/machine_spec.h"

namespace aliquot::simdriver {

// Makes `directory`/sys and `directory`/proc.
Status write_host_tree(const MachineSpec& spec, const std::filesystem::path& directory);

}  // namespace aliquot::simdriver
