// Which NVLink of a GPU leads where: derived from the machine's matrix. Pure; any thread.
#pragma once

#include <optional>

#include "simdriver/machine_spec.h"

namespace aliquot::simdriver::nvml {

struct LinkEnd {
  bool is_switch = false;
  unsigned gpu = 0;    // of the other end, unless a switch
  PciAddress address;  // of the other end
  unsigned link = 0;   // its number there
};

// Links that the GPU has; those without an end lead nowhere and are down.
unsigned link_count(const MachineSpec& machine, unsigned gpu);
std::optional<LinkEnd> link_end(const MachineSpec& machine, unsigned gpu, unsigned link);

// NVML's number for a generation: 2.0, 3.0, 4.0, 5.0 (there are in-between ones).
unsigned nvml_nvlink_version(unsigned generation);

// Peer access over PCIe: below one root, and not between consumer cards.
bool pcie_peers(const MachineSpec& machine, unsigned gpu, unsigned other);

}  // namespace aliquot::simdriver::nvml
