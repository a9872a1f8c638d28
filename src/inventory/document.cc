#include "inventory/document.h"

#include <algorithm>
#include <utility>

namespace aliquot::inventory {
namespace {

// NVML writes eight digits of domain, sysfs four: "00000000:07:00.0", "0000:07:00.0".
std::string sysfs_bus_id(const std::string& nvml_bus_id) {
  std::string id = nvml_bus_id;
  if (id.size() == 16 && id.starts_with("0000")) id.erase(0, 4);
  std::ranges::transform(id, id.begin(), [](unsigned char c) { return std::tolower(c); });
  return id;
}

const PciDevice* find_pci(const std::vector<PciDevice>& pci, const std::string& bus_id) {
  const auto found = std::ranges::find(pci, bus_id, &PciDevice::bus_id);
  return found == pci.end() ? nullptr : &*found;
}

// How near device `a` is to `b`; kSys where one of them is not on this machine's PCI.
model::LinkKind nearness(const PciDevice* a, const PciDevice* b) {
  return a == nullptr || b == nullptr ? model::LinkKind::kSys : path_between(*a, *b);
}

// The graph of NVML's GPU links with the NICs beside them.
Result<model::NodeTopology> graph_of(Nvml& nvml, const std::vector<PciDevice>& pci,
                                     const std::vector<RdmaDevice>& nics) {
  auto gpus = topology_from(nvml);
  if (!gpus) return gpus.error();
  const auto identities = nvml.gpus();
  if (!identities) return identities.error();
  std::vector<model::Device> devices;
  std::vector<const PciDevice*> places;
  for (const NvmlGpu& gpu : *identities) places.push_back(find_pci(pci, sysfs_bus_id(gpu.bus_id)));
  for (std::size_t i = 0; i < nics.size(); ++i) {
    devices.push_back({"NIC" + std::to_string(i), nics[i].name, "", nics[i].numa});
    places.push_back(find_pci(pci, nics[i].pci));
  }
  model::NodeTopology node(gpus->gpus(), std::move(devices));
  for (std::size_t a = 0; a < node.device_count(); ++a)
    for (std::size_t b = a + 1; b < node.device_count(); ++b)
      node.set_link(a, b,
                    b < node.gpu_count() ? gpus->link(a, b)
                                         : model::path_link(nearness(places[a], places[b])));
  return node;
}

std::string nearest(const PciDevice* gpu, const std::vector<PciDevice>& pci, PciKind kind) {
  const PciDevice* best = nullptr;
  for (const PciDevice& device : pci)
    if (device.kind == kind && (best == nullptr || nearness(gpu, &device) < nearness(gpu, best)))
      best = &device;
  return gpu == nullptr || best == nullptr ? "" : best->bus_id;
}

std::string nearest_nic(const PciDevice* gpu, const std::vector<PciDevice>& pci,
                        const std::vector<RdmaDevice>& nics) {
  const RdmaDevice* best = nullptr;
  auto best_path = model::LinkKind::kSys;
  for (const RdmaDevice& nic : nics) {
    const auto path = nearness(gpu, find_pci(pci, nic.pci));
    if (nic.software || (best != nullptr && path >= best_path)) continue;
    best = &nic;
    best_path = path;
  }
  return gpu == nullptr || best == nullptr ? "" : best->name;
}

}  // namespace

Roots roots_of(const Driver& driver) {
  if (!driver.simulated()) return {};
  return {driver.machine_directory / "sys", driver.machine_directory / "proc",
          driver.machine_directory / "mps"};
}

Result<Inventory> collect(Nvml& nvml, const Roots& roots, const Driver& driver,
                          std::int64_t now_unix_s) {
  Inventory all;
  all.taken_unix_s = now_unix_s;
  all.driver = driver.name;
  all.simulated = driver.simulated();
  const auto system = nvml.system();
  if (!system) return system.error();
  all.system = *system;
  const Sysfs sys(roots.sys);
  const Sysfs proc(roots.proc);
  all.host = read_host(sys, proc);
  all.mps = read_mps(roots.mps_pipes, proc);
  all.gpu_direct = read_gpu_direct(sys, all.host.kernel);
  all.nics = read_rdma(sys);
  const std::vector<PciDevice> pci = read_pci(sys);
  all.topology_hidden = hides_topology(pci);
  const auto identities = nvml.gpus();
  if (!identities) return identities.error();
  for (unsigned i = 0; i < identities->size(); ++i) {
    const auto state = nvml.state(i);
    if (!state) return state.error();
    InventoryGpu gpu;
    gpu.identity = (*identities)[i];
    gpu.memory_bytes = state->memory.total_bytes;
    gpu.bar1_bytes = state->bar1_bytes.value_or(0);
    gpu.mig = state->mig.value_or(false);
    gpu.compute_mode = state->compute_mode;
    const PciDevice* place = find_pci(pci, sysfs_bus_id(gpu.identity.bus_id));
    gpu.nearest_nic = nearest_nic(place, pci, all.nics);
    gpu.nearest_nvme = nearest(place, pci, PciKind::kNvme);
    all.gpus.push_back(std::move(gpu));
  }
  auto graph = graph_of(nvml, pci, all.nics);
  if (!graph) return graph.error();
  all.topology = std::move(*graph);
  return all;
}

}  // namespace aliquot::inventory
