// The table of findings, and the checks of what the machine is made of. Those of software and
// settings: doctor_software.cc.

#include "inventory/doctor.h"

#include <algorithm>
#include <array>

#include "inventory/doctor_checks.h"

namespace aliquot::inventory {
namespace {

constexpr std::array kKinds = {
#define FINDING(code, severity, what, remedy) FindingKind{#code, Severity::severity, what, remedy},
#include "inventory/doctor_codes.def"
#undef FINDING
};

std::string gpu_name(const GpuLook& gpu) { return "GPU " + std::to_string(gpu.index); }

std::string link_words(const PciLink& link) {
  std::string speed = std::to_string(link.gt_s);
  speed.resize(speed.find('.') + 2);
  return "x" + std::to_string(link.width) + " at " + speed + " GT/s";
}

bool same_place(const std::string& nvml_bus_id, const std::string& sysfs_bus_id) {
  return nvml_bus_id.size() >= sysfs_bus_id.size() &&
         std::ranges::equal(
             nvml_bus_id.substr(nvml_bus_id.size() - sysfs_bus_id.size()), sysfs_bus_id,
             [](unsigned char a, unsigned char b) { return std::tolower(a) == std::tolower(b); });
}

void check_answers(const DoctorView& view, Findings& found) {
  if (!view.trouble.empty()) {
    const char* code = view.hung     ? "NVML_HANGS"
                       : view.denied ? "NVML_ERR_NO_PERMISSION"
                                     : "NVML_FAILS";
    found.add(code, "", view.trouble);
  }
  for (const GpuLook& gpu : view.gpus) {
    if (gpu.health.off_bus) {
      found.add("GPU_LOST", gpu_name(gpu), "NVML: GPU is lost");
    } else if (!gpu.trouble.empty()) {
      const char* code = gpu.hung     ? "NVML_HANGS"
                         : gpu.denied ? "NVML_ERR_NO_PERMISSION"
                                      : "NVML_FAILS";
      found.add(code, gpu_name(gpu), gpu.trouble);
    }
  }
}

void check_health(const DoctorView& view, Findings& found) {
  for (const GpuLook& gpu : view.gpus) {
    const HealthReading& health = gpu.health;
    if (const auto errors = health.uncorrected.value_or(0); errors > 0)
      found.add("GPU_ECC_UNCORRECTED", gpu_name(gpu),
                std::to_string(errors) + " uncorrectable ECC errors");
    if (health.remap_pending.value_or(false))
      found.add("GPU_ROW_REMAP_PENDING", gpu_name(gpu), "NVML: remapped rows, pending");
    if (health.remap_failed.value_or(false))
      found.add("GPU_ROW_REMAP_FAILED", gpu_name(gpu), "NVML: remapped rows, failure");
    if (health.temperature_c && health.slowdown_c && *health.temperature_c >= *health.slowdown_c)
      found.add("GPU_HOT", gpu_name(gpu),
                std::to_string(*health.temperature_c) + " C, slows down at " +
                    std::to_string(*health.slowdown_c));
    if (gpu.persistence == false)
      found.add("GPU_PERSISTENCE_OFF", gpu_name(gpu), "NVML: persistence mode disabled");
    if (gpu.compute_mode == 3)
      found.add("GPU_MODE_EXCLUSIVE", gpu_name(gpu), "NVML: compute mode exclusive process");
    if (gpu.compute_mode == 2)
      found.add("GPU_MODE_PROHIBITED", gpu_name(gpu), "NVML: compute mode prohibited");
  }
}

// A link that is down on one GPU and up on most others of its kind was meant to be up.
void check_nvlinks(const DoctorView& view, Findings& found) {
  std::size_t most = 0;
  for (const GpuLook& gpu : view.gpus)
    most = std::max<std::size_t>(most, std::ranges::count(gpu.health.nvlinks_up, true));
  for (const GpuLook& gpu : view.gpus) {
    if (gpu.health.nvlinks_up.size() < most) continue;
    const auto up = static_cast<std::size_t>(std::ranges::count(gpu.health.nvlinks_up, true));
    if (up < most)
      found.add("NVLINK_DOWN", gpu_name(gpu),
                std::to_string(up) + " NVLinks up, another GPU of this machine has " +
                    std::to_string(most));
  }
}

// A GPU that does not answer tells no bus id: as many as these may be in sysfs alone.
void check_missing(const DoctorView& view, Findings& found) {
  if (!view.trouble.empty()) return;
  std::vector<std::string> unknown;
  for (const PciDevice& device : view.pci) {
    const bool nvidia = device.driver.empty() || device.driver == "nvidia";
    const bool known = std::ranges::any_of(
        view.gpus, [&](const GpuLook& gpu) { return same_place(gpu.bus_id, device.bus_id); });
    if (device.kind == PciKind::kGpu && nvidia && !known) unknown.push_back(device.bus_id);
  }
  const auto silent = static_cast<std::size_t>(
      std::ranges::count_if(view.gpus, [](const GpuLook& gpu) { return gpu.bus_id.empty(); }));
  if (unknown.size() <= silent) return;
  if (silent == 0) {
    for (const std::string& bus_id : unknown)
      found.add("GPU_MISSING", bus_id, "in sysfs, not among NVML's GPUs");
    return;
  }
  std::string candidates;
  for (const std::string& bus_id : unknown) candidates += (candidates.empty() ? "" : ", ") + bus_id;
  found.add("GPU_MISSING", "",
            "in sysfs " + candidates + ", of which NVML has only " + std::to_string(silent) +
                ", which does not answer");
}

void check_driver(const DoctorView& view, Findings& found) {
  bool nvidia = false;
  for (const PciDevice& device : view.pci) {
    if (device.kind != PciKind::kGpu) continue;
    nvidia = true;
    if (!device.driver.empty() && device.driver != "nvidia") {
      found.add("GPU_OTHER_DRIVER", device.bus_id, "bound to " + device.driver);
    }
  }
  if (nvidia && view.module_version.empty())
    found.add("DRIVER_ABSENT", "", "no /proc/driver/nvidia/version");
  if (!view.module_version.empty() && !view.system.driver_version.empty() &&
      view.module_version != view.system.driver_version)
    found.add("DRIVER_VERSION_MISMATCH", "",
              "module " + view.module_version + ", library " + view.system.driver_version);
  if (nvidia && view.nouveau) found.add("DRIVER_NOUVEAU", "", "/sys/module/nouveau");
}

void check_pci(const DoctorView& view, Findings& found) {
  for (const PciDevice& device : view.pci) {
    if (device.kind == PciKind::kNvme || device.kind == PciKind::kNvswitch) continue;
    if (device.link.width > 0 && device.link.width < device.most.width)
      found.add("PCIE_LINK_NARROW", device.bus_id,
                link_words(device.link) + ", could be " + link_words(device.most));
    if (device.most.gt_s < device.own.gt_s || device.most.width < device.own.width)
      found.add("PCIE_SLOT_SLOW", device.bus_id,
                "device " + link_words(device.own) + ", with its slot " + link_words(device.most));
    if (device.payload_bytes && device.payload_can_bytes &&
        *device.payload_bytes < *device.payload_can_bytes)
      found.add("PCIE_PAYLOAD_SMALL", device.bus_id,
                std::to_string(*device.payload_bytes) + " bytes, could be " +
                    std::to_string(*device.payload_can_bytes));
    if (!device.numa && view.host.numa.size() > 1 && view.host.hypervisor.empty())
      found.add("NUMA_UNKNOWN", device.bus_id, "numa_node is -1");
  }
  if (hides_topology(view.pci) && !view.host.hypervisor.empty())
    found.add("TOPOLOGY_HIDDEN", "", "guest of " + view.host.hypervisor + ", no bridge is shown");
}

void check_far_nics(const DoctorView& view, Findings& found) {
  std::vector<const PciDevice*> fast;
  for (const RdmaDevice& nic : view.nics)
    if (const auto at = std::ranges::find(view.pci, nic.pci, &PciDevice::bus_id);
        at != view.pci.end() && !nic.software)
      fast.push_back(&*at);
  if (fast.empty()) return;
  for (const PciDevice& gpu : view.pci) {
    // A GPU that does not tell its node is another finding, and not known to be far.
    if (gpu.kind != PciKind::kGpu || !gpu.numa) continue;
    const bool far = std::ranges::all_of(fast, [&](const PciDevice* nic) {
      return path_between(gpu, *nic) == model::LinkKind::kSys;
    });
    if (far) found.add("NUMA_FAR_NIC", gpu.bus_id, "every RDMA device is on another socket");
  }
}

bool all_zero(const std::string& text) {
  return text.find_first_of("123456789") == std::string::npos;
}

void check_rdma(const DoctorView& view, Findings& found) {
  bool hardware = false;
  for (const RdmaDevice& nic : view.nics) {
    hardware = hardware || !nic.software;
    if (nic.software) {
      found.add("RDMA_SOFTWARE", nic.name, "no PCI device behind it");
      continue;
    }
    if (!std::ranges::any_of(nic.ports, &RdmaPort::active))
      found.add("RDMA_PORT_DOWN", nic.name, "no port is ACTIVE");
    if (nic.kind == RdmaKind::kRoceV1)
      found.add("RDMA_ROCE_V1", nic.name, "no GID of type RoCE v2");
    for (const RdmaPort& port : nic.ports) {
      const auto pfc = view.pfc.find(port.net_device);
      if (pfc != view.pfc.end() && all_zero(pfc->second))
        found.add("RDMA_NO_PFC", nic.name, port.net_device + ": qos/pfc " + pfc->second);
      const auto ecn = view.ecn.find(port.net_device);
      if (ecn != view.ecn.end() && all_zero(ecn->second))
        found.add("RDMA_NO_ECN", nic.name, port.net_device + ": ecn/roce_np/enable " + ecn->second);
    }
  }
  if (hardware && !view.gpus.empty() && view.gpu_direct == GpuDirect::kNone)
    found.add("GDR_MISSING", "", "neither nvidia-peermem nor a kernel with dma-buf");
}

}  // namespace

std::span<const FindingKind> finding_kinds() { return kKinds; }

void Findings::add(std::string_view code, std::string subject, std::string evidence) {
  all_.push_back({std::ranges::find(kKinds, code, &FindingKind::code), std::move(subject),
                  std::move(evidence)});
}

std::vector<Finding> Findings::take() {
  std::ranges::stable_sort(all_, [](const Finding& a, const Finding& b) {
    return a.kind != b.kind ? a.kind < b.kind : a.subject < b.subject;
  });
  return std::move(all_);
}

std::vector<Finding> diagnose(const DoctorView& view) {
  Findings found;
  check_answers(view, found);
  check_health(view, found);
  check_nvlinks(view, found);
  check_missing(view, found);
  check_driver(view, found);
  check_pci(view, found);
  check_far_nics(view, found);
  check_rdma(view, found);
  check_software(view, found);
  return found.take();
}

}  // namespace aliquot::inventory
