#include "simdriver/host_tree.h"

#include <sys/utsname.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace aliquot::simdriver {
namespace {

namespace fs = std::filesystem;

constexpr unsigned kSameNode = 10;  // ACPI SLIT's unit
constexpr unsigned kOtherNode = 21;
constexpr std::uint64_t kNodeMemoryKib = 256ull << 20;

template <typename... Args>
std::string printed(const char* format, Args... args) {
  char text[256];
  std::snprintf(text, sizeof(text), format, args...);
  return text;
}

// What NVML calls "00000000:BD:00.0" is "0000:bd:00.0" here.
std::string bus_id_of(const PciAddress& pci) {
  return printed("%04x:%02x:%02x.0", pci.domain, pci.bus, pci.device);
}

// The bridges a device hangs below, by number; two devices share those that their distance says.
struct Place {
  unsigned host = 0;
  unsigned port = 0;
  unsigned hub = 0;  // the PCIe switch
  int numa = -1;
};

// The first GPU no farther than `limit`: it names the bridge that they share.
unsigned first_within(const std::vector<PciePath>& paths, PciePath limit, unsigned own) {
  const auto near = [&](PciePath path) { return path <= limit; };
  const auto found = std::ranges::find_if(paths, near);
  return found == paths.end() ? own : static_cast<unsigned>(found - paths.begin());
}

Place place_of(const std::vector<PciePath>& paths, unsigned own, int numa) {
  return {first_within(paths, PciePath::kPhb, own), first_within(paths, PciePath::kPxb, own),
          first_within(paths, PciePath::kPix, own), numa};
}

class Tree {
 public:
  Tree(const MachineSpec& spec, fs::path directory) : spec_(spec), root_(std::move(directory)) {}

  Status write() {
    for (unsigned i = 0; i < spec_.gpus.size(); ++i) write_gpu(i);
    for (unsigned i = 0; i < spec_.nics.size(); ++i) write_nic(i);
    write_nodes();
    write_modules();
    write_proc();
    if (fault_) return Error{Errc::kInternal, "write " + fault_.value().string()};
    return {};
  }

 private:
  void file(const fs::path& path, std::string_view content) {
    std::error_code ignored;
    fs::create_directories((root_ / path).parent_path(), ignored);
    std::ofstream out(root_ / path, std::ios::binary);
    if (!(out << content).flush() && !fault_) fault_ = root_ / path;
  }
  // Relative, so that the machine's directory may be moved.
  void link(const fs::path& path, const fs::path& to) {
    std::error_code error;
    fs::create_directories((root_ / path).parent_path(), error);
    fs::create_directories(root_ / to, error);
    fs::create_symlink(to.lexically_relative(path.parent_path()), root_ / path, error);
    if (error && !fault_) fault_ = root_ / path;
  }

  // Bridges have functions 1 to 3, so that none is called like a device.
  fs::path pci_path(const Place& place, unsigned own, const std::string& bus_id) const {
    return fs::path("sys/devices") / printed("pci0000:%02x", place.host) /
           printed("0000:%02x:%02x.3", place.host, place.port % 32) /
           printed("0000:%02x:00.1", place.hub) / printed("0000:%02x:%02x.2", place.hub, own % 32) /
           bus_id;
  }

  fs::path write_device(const Place& place, unsigned own, const std::string& bus_id,
                        std::string_view driver) {
    const fs::path at = pci_path(place, own, bus_id);
    file(at / "numa_node", std::to_string(place.numa) + "\n");
    if (place.numa >= 0)
      file(at / "local_cpulist", spec_.numa[static_cast<std::size_t>(place.numa)].cpus + "\n");
    link(fs::path("sys/bus/pci/devices") / bus_id, at);
    link(at / "driver", fs::path("sys/bus/pci/drivers") / driver);
    return at;
  }

  void write_link(const fs::path& at, unsigned generation, unsigned width) {
    constexpr const char* kRates[] = {"2.5", "5.0", "8.0", "16.0", "32.0", "64.0"};
    const std::string speed =
        std::string(kRates[std::clamp(generation, 1u, 6u) - 1]) + " GT/s PCIe\n";
    for (const fs::path& end : {at, at.parent_path()})
      for (const char* which : {"current", "max"}) {
        file(end / (std::string(which) + "_link_speed"), speed);
        file(end / (std::string(which) + "_link_width"), std::to_string(width) + "\n");
      }
  }

  // Configuration space with one capability: PCI Express, payload 256 of 256 bytes.
  void write_config(const fs::path& at) {
    std::string config(256, '\0');
    config[0x34] = 0x40;
    config[0x40] = 0x10;
    config[0x44] = 1;
    config[0x48] = 1 << 5;
    file(at / "config", config);
  }

  void write_gpu(unsigned i) {
    const GpuSpec& gpu = spec_.gpus[i];
    const GpuModel& model = spec_.model_of(i);
    const fs::path at =
        write_device(place_of(spec_.pcie[i], i, gpu.numa), i, bus_id_of(gpu.pci), "nvidia");
    file(at / "class", "0x030200\n");
    file(at / "vendor", "0x10de\n");
    file(at / "device", printed("0x%04x\n", model.pci_device_id >> 16));
    const std::uint64_t window = 0x200000000000ull + i * 0x100000000000ull;
    file(
        at / "resource",
        printed("0x%016llx 0x%016llx 0x000000000014220c\n", static_cast<unsigned long long>(window),
                static_cast<unsigned long long>(window + model.memory.bar1_bytes - 1)));
    write_link(at, model.pcie.generation, model.pcie.width);
    write_config(at);
  }

  void write_nic(unsigned i) {
    const Nic& nic = spec_.nics[i];
    const auto own = static_cast<unsigned>(spec_.gpus.size()) + i;
    Place place = place_of(nic.to_gpu, own, -1);
    const unsigned nearest = first_within(nic.to_gpu, PciePath::kNode, own);
    if (nearest < spec_.gpus.size()) place.numa = spec_.gpus[nearest].numa;
    const fs::path pci = write_device(place, own, printed("0000:%02x:00.0", 0xe0 + i), "mlx5_core");
    file(pci / "class", "0x020700\n");
    file(pci / "vendor", "0x15b3\n");
    file(pci / "device", "0x101b\n");
    write_link(pci, 4, 16);
    write_config(pci);
    const fs::path at = fs::path("sys/class/infiniband") / nic.name;
    link(at / "device", pci);
    file(at / "node_type", "1: CA\n");
    file(at / "node_guid", printed("0000:0000:0000:%04x\n", i + 1));
    file(at / "ports/1/link_layer", "InfiniBand\n");
    file(at / "ports/1/state", "4: ACTIVE\n");
    file(at / "ports/1/phys_state", "5: LinkUp\n");
    file(at / "ports/1/rate", "200 Gb/sec (4X HDR)\n");
  }

  void write_nodes() {
    const std::size_t count = spec_.numa.size();
    for (std::size_t i = 0; i < count; ++i) {
      const fs::path at = fs::path("sys/devices/system/node") / ("node" + std::to_string(i));
      file(at / "cpulist", spec_.numa[i].cpus + "\n");
      std::string distances;
      for (std::size_t other = 0; other < count; ++other)
        distances += (other == 0 ? "" : " ") + std::to_string(other == i ? kSameNode : kOtherNode);
      file(at / "distance", distances + "\n");
      file(at / "meminfo", printed("Node %zu MemTotal: %llu kB\n", i,
                                   static_cast<unsigned long long>(kNodeMemoryKib)));
    }
    file("sys/class/dmi/id/product_name", "simulated " + spec_.preset + "\n");
  }

  void write_modules() {
    file("sys/module/nvidia/version", spec_.driver.driver + "\n");
    if (!spec_.nics.empty()) file("sys/module/nvidia_peermem/version", spec_.driver.driver + "\n");
  }

  void write_proc() {
    utsname system{};
    uname(&system);
    file("proc/sys/kernel/osrelease", std::string(system.release) + "\n");
    file("proc/cpuinfo", "flags\t\t: fpu\n");
    file("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  " +
                                           spec_.driver.driver + "  simulated\n");
  }

  const MachineSpec& spec_;
  fs::path root_;
  std::optional<fs::path> fault_;  // the first path that could not be written
};

}  // namespace

Status write_host_tree(const MachineSpec& spec, const fs::path& directory) {
  return Tree(spec, directory).write();
}

}  // namespace aliquot::simdriver
