// The PCI devices that matter to a GPU: GPUs, NICs, NVMe drives, NVSwitches; how near two are.
//
// Read from sysfs alone: no library, no root, and a test lays out its own tree. What only root may
// read (the payload sizes, beyond the first 64 bytes of the configuration space) is nullopt for
// others. Leaves to others: NVLink (nvml.h). Any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "inventory/sysfs.h"
#include "model/topology.h"

namespace aliquot::inventory {

enum class PciKind : std::uint8_t { kGpu, kNic, kNvme, kNvswitch };

struct PciLink {
  double gt_s = 0;  // giga-transfers a second: 8 is generation 3, 16 is 4, 32 is 5
  unsigned width = 0;
  bool operator==(const PciLink&) const = default;
};

struct PciDevice {
  std::string bus_id;  // "0000:07:00.0"
  PciKind kind = PciKind::kGpu;
  std::uint16_t vendor = 0;
  std::uint16_t device = 0;
  std::string driver;                         // empty: none is bound
  std::optional<int> numa;                    // nullopt: the machine does not tell
  std::string cpus;                           // "0-23"
  PciLink link;                               // now: an idle GPU may have slowed its link down
  PciLink own;                                // what the device alone could do
  PciLink most;                               // what device and upstream port can both do
  std::uint64_t bar1_bytes = 0;               // the largest memory window; 0: not told
  std::optional<unsigned> payload_bytes;      // largest packet in use; nullopt: needs root
  std::optional<unsigned> payload_can_bytes;  // that the device could use
  std::vector<std::string> chain;  // host bridge ("pci0000:00"), then every port on the way
  bool operator==(const PciDevice&) const = default;
};

std::vector<PciDevice> read_pci(const Sysfs& sys);

// kPix, kPxb, kPhb, kNode or kSys, in the words of `nvidia-smi topo -m`. Two devices that both do
// not tell their NUMA node count as being on one.
model::LinkKind path_between(const PciDevice& a, const PciDevice& b);

// Every device hangs off one host bridge by itself: most virtual machines hide their topology so.
bool hides_topology(const std::vector<PciDevice>& devices);

std::string_view name_of(PciKind kind);

}  // namespace aliquot::inventory
