#include "cli/smi_source.h"

#include "cli/machine_topology.h"
#include "cli/surroundings.h"
#include "simdriver/driver_root.h"
#include "simdriver/presets.h"

namespace aliquot::cli {

namespace fs = std::filesystem;

Result<SmiSource> smi_source(const std::string& sim) {
  if (inside_lease()) {
    const auto share = share_driver();
    if (!share) return share.error();
    return SmiSource{share->libnvidia_ml, share->title(), {}};
  }
  // As the nvidia-smi of a driver root, of that root's machine whatever else runs here.
  const auto program = own_program();
  if (!program) return program.error();
  if (const auto root = simdriver::machine_of_root(*program))
    return SmiSource{root->libnvidia_ml, "simulated machine " + root->name, root->machine_json};
  const auto driver = inventory::choose_driver(driver_question(sim));
  if (!driver) return driver.error();
  return SmiSource{driver->libnvidia_ml, driver->title(),
                   driver->simulated() ? driver->machine_directory / "machine.json" : fs::path()};
}

Result<model::NodeTopology> topology_of(const SmiSource& source, inventory::Nvml& nvml) {
  if (source.machine_json.empty()) return inventory::topology_from(nvml);
  const auto machine = simdriver::read_machine(source.machine_json);
  if (!machine) return machine.error();
  return topology_of(*machine);
}

}  // namespace aliquot::cli
