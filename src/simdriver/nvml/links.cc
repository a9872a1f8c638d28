#include "simdriver/nvml/links.h"

#include "driver_abi/nvml_types.h"

namespace aliquot::simdriver::nvml {
namespace {

constexpr unsigned kSwitches = 6;  // of an HGX board of A100s; four on later ones
constexpr unsigned kSwitchesLater = 4;
constexpr std::uint8_t kFirstSwitchBus = 0xc4;

LinkEnd switch_end(const MachineSpec& machine, unsigned gpu, unsigned link) {
  const unsigned switches = machine.model_of(gpu).nvlink.version <= 3 ? kSwitches : kSwitchesLater;
  LinkEnd end;
  end.is_switch = true;
  end.address.bus = static_cast<std::uint8_t>(kFirstSwitchBus + link % switches);
  // Ports are dealt out in the order of the GPUs.
  const unsigned ports = machine.model_of(gpu).nvlink.links / switches;
  end.link = gpu * ports + link / switches;
  return end;
}

}  // namespace

unsigned link_count(const MachineSpec& machine, unsigned gpu) {
  return machine.model_of(gpu).nvlink.links;
}

std::optional<LinkEnd> link_end(const MachineSpec& machine, unsigned gpu, unsigned link) {
  if (link >= link_count(machine, gpu)) return std::nullopt;
  if (machine.nvswitch) return switch_end(machine, gpu, link);
  // Numbered peer by peer, in the order of the GPUs.
  unsigned first = 0;
  for (unsigned other = 0; other < machine.gpus.size(); ++other) {
    const unsigned shared = machine.nvlinks[gpu][other];
    if (link < first + shared) {
      LinkEnd end{.is_switch = false,
                  .gpu = other,
                  .address = machine.gpus[other].pci,
                  .link = link - first};
      for (unsigned before = 0; before < gpu; ++before) end.link += machine.nvlinks[other][before];
      return end;
    }
    first += shared;
  }
  return std::nullopt;
}

unsigned nvml_nvlink_version(unsigned generation) {
  switch (generation) {
    case 2:
      return NVML_NVLINK_VERSION_2_0;
    case 3:
      return NVML_NVLINK_VERSION_3_0;
    case 4:
      return NVML_NVLINK_VERSION_4_0;
    case 5:
      return NVML_NVLINK_VERSION_5_0;
    default:
      return NVML_NVLINK_VERSION_INVALID;
  }
}

bool pcie_peers(const MachineSpec& machine, unsigned gpu, unsigned other) {
  return machine.pcie[gpu][other] < PciePath::kSys &&
         machine.model_of(gpu).brand != Brand::kGeforceRtx;
}

}  // namespace aliquot::simdriver::nvml
