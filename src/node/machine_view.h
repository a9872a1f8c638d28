// MachineView: what the daemon needs of the machine, made from its driver and its inventory, and
// how both are found without calling NVML here and kept for the next start.
//
// Functions; any thread. find_driver() and take_inventory() run aliquot-probe and wait for it, some
// seconds at most.
#pragma once

#include <atomic>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/result.h"
#include "inventory/document.h"
#include "inventory/driver_choice.h"
#include "node/device_board.h"
#include "node/probe_pool.h"

namespace aliquot::node {

struct MachineView {
  std::vector<KnownGpu> gpus;  // in PCI order, as all of these
  std::vector<OfferedGpu> offered;
  std::shared_ptr<const topology::Shape> shape;  // null: the links are not known
  std::map<std::string, unsigned> minors;        // by UUID
};
MachineView view_of(const inventory::Inventory& inventory, const inventory::Driver& driver);

struct MachineSearch {
  std::filesystem::path probe;              // aliquot-probe
  std::filesystem::path machines;           // a state directory: where simulated machines are
  std::filesystem::path cache_directory;    // what the last daemon found; may be absent
  std::string sim;                          // --sim
  const std::atomic<bool>* stop = nullptr;  // ends a wait for the driver
  // For each answer: the first nvmlInit without persistence mode takes seconds.
  int patience_ms = 20'000;
};

struct FoundMachine {
  inventory::Driver driver;
  inventory::Inventory inventory;
  bool from_cache = false;  // to be taken anew in the background
};
// From the cache where that is of the same machine, so that kubelet is served before NVML answers.
Result<FoundMachine> find_machine(const MachineSearch& search);
// Asks the driver, and writes the cache. Errc::kUnavailable: it does not answer.
Result<FoundMachine> take_machine(const MachineSearch& search);

}  // namespace aliquot::node
