// What `aliquot smi` asks: the library of the machine, the share or the driver root it stands in.
// One thread.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "common/result.h"
#include "inventory/nvml.h"
#include "model/topology.h"

namespace aliquot::cli {

struct SmiSource {
  std::filesystem::path libnvidia_ml;
  std::string title;                   // says "simulated" where it is
  std::filesystem::path machine_json;  // of a simulated machine seen whole; else empty
};

// `sim`: the machine named by --sim; may be empty.
Result<SmiSource> smi_source(const std::string& sim);

// How its devices are connected. NICs are known of simulated machines only, not inside a share.
Result<model::NodeTopology> topology_of(const SmiSource& source, inventory::Nvml& nvml);

}  // namespace aliquot::cli
