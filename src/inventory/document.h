// Inventory: everything known of a machine's GPUs and what is near them, as one document.
//
// Taken from NVML, sysfs and /proc; printed as versioned JSON (docs/formats/inventory.md), read
// back from it, so that a restarted daemon can serve from the last one before NVML has answered.
// What changes by the second (use, processes, heat) is not in it. Any thread; collect() waits for
// NVML, which may hang on a broken driver.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"
#include "format/json.h"
#include "inventory/driver_choice.h"
#include "inventory/host.h"
#include "inventory/nvml.h"
#include "inventory/pci.h"
#include "inventory/rdma.h"
#include "model/topology.h"

namespace aliquot::inventory {

struct InventoryGpu {
  NvmlGpu identity;
  std::uint64_t memory_bytes = 0;  // as the driver counts, with what it keeps for itself
  std::uint64_t bar1_bytes = 0;    // 0: not told
  bool mig = false;                // MIG mode is on
  unsigned compute_mode = 0;       // 0 default, 2 prohibited, 3 exclusive process
  std::string nearest_nic;         // an RDMA device; empty: none
  std::string nearest_nvme;        // a PCI bus id; empty: none
  bool operator==(const InventoryGpu&) const = default;
};

struct Inventory {
  std::int64_t taken_unix_s = 0;
  std::string driver;  // "nvidia" or "sim:NAME"
  bool simulated = false;
  NvmlSystem system;
  Host host;
  MpsState mps = MpsState::kNone;
  GpuDirect gpu_direct = GpuDirect::kNone;
  bool topology_hidden = false;  // a virtual machine shows every device on one bus
  std::vector<InventoryGpu> gpus;
  std::vector<RdmaDevice> nics;
  // Links of the GPUs and, behind them, of `nics`.
  model::NodeTopology topology;
  bool operator==(const Inventory&) const = default;
};

// Where the kernel's files lie; tests lay out their own.
struct Roots {
  std::filesystem::path sys = "/sys";
  std::filesystem::path proc = "/proc";
  std::filesystem::path mps_pipes = "/tmp/nvidia-mps";
};

// A simulated machine has a /sys and a /proc of its own in its directory, or none; never this
// machine's.
Roots roots_of(const Driver& driver);

Result<Inventory> collect(Nvml& nvml, const Roots& roots, const Driver& driver,
                          std::int64_t now_unix_s);

format::Json to_json(const Inventory& inventory);
// Strict: an unknown key or another version is an error that names the place.
Result<Inventory> parse_inventory(std::string_view text, std::string_view where);

}  // namespace aliquot::inventory
