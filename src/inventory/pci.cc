#include "inventory/pci.h"

#include <algorithm>
#include <charconv>
#include <sstream>

namespace aliquot::inventory {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kDevices = "bus/pci/devices";
constexpr std::uint16_t kNvidia = 0x10de;

// PCI class codes, the first two of three bytes (PCI Code and ID Assignment Specification).
std::optional<PciKind> kind_of(std::int64_t klass, std::uint16_t vendor) {
  const auto code = static_cast<unsigned>(klass >> 8);
  if (vendor == kNvidia && (code == 0x0300 || code == 0x0302)) return PciKind::kGpu;
  if (vendor == kNvidia && code == 0x0680) return PciKind::kNvswitch;
  if (code == 0x0200 || code == 0x0207) return PciKind::kNic;
  if (code == 0x0108) return PciKind::kNvme;
  return std::nullopt;
}

PciLink read_link(const Sysfs& sys, const fs::path& at, const std::string& which) {
  return {sys.number(at / (which + "_link_speed")).value_or(0),
          static_cast<unsigned>(sys.whole(at / (which + "_link_width")).value_or(0))};
}

PciLink lesser(const PciLink& a, const PciLink& b) {
  if (b.gt_s == 0 || b.width == 0) return a;  // a virtual port tells nothing
  if (a.gt_s == 0 || a.width == 0) return b;
  return {std::min(a.gt_s, b.gt_s), std::min(a.width, b.width)};
}

// "resource": a line for each window: first byte, last byte, flags; flag 0x200 is memory.
std::uint64_t largest_window(const Sysfs& sys, const fs::path& at) {
  std::istringstream lines(sys.text(at / "resource").value_or(""));
  std::uint64_t largest = 0, first = 0, last = 0, flags = 0;
  while (lines >> std::hex >> first >> last >> flags)
    if ((flags & 0x200) != 0 && last > first) largest = std::max(largest, last - first + 1);
  return largest;
}

// The PCI Express capability (id 0x10) holds what payload a device can and does use, as 128 << n
// (PCI Express Base Specification, Device Capabilities 2:0, Device Control 7:5).
void read_payload(const Sysfs& sys, const fs::path& at, PciDevice& device) {
  const std::string config = sys.bytes(at / "config", 256);
  if (config.size() < 256) return;
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(config[i & 0xff]); };
  unsigned next = byte(0x34);
  for (int hops = 0; next >= 0x40 && hops < 48; ++hops, next = byte(next + 1)) {
    if (byte(next) != 0x10) continue;
    device.payload_can_bytes = 128u << (byte(next + 4) & 7);
    device.payload_bytes = 128u << ((byte(next + 8) >> 5) & 7);
    return;
  }
}

// devices/pci0000:00/0000:00:01.0/0000:01:00.0 -> {"pci0000:00", "0000:00:01.0"}
std::vector<std::string> chain_of(const fs::path& real) {
  std::vector<std::string> chain;
  for (const fs::path& part : real.parent_path())
    if (part != "devices") chain.push_back(part);
  return chain;
}

PciDevice read_device(const Sysfs& sys, const std::string& bus_id, PciKind kind) {
  const fs::path at = fs::path(kDevices) / bus_id;
  PciDevice device;
  device.bus_id = bus_id;
  device.kind = kind;
  device.vendor = static_cast<std::uint16_t>(sys.whole(at / "vendor").value_or(0));
  device.device = static_cast<std::uint16_t>(sys.whole(at / "device").value_or(0));
  device.driver = sys.link_name(at / "driver").value_or("");
  if (const auto numa = sys.whole(at / "numa_node"); numa && *numa >= 0)
    device.numa = static_cast<int>(*numa);
  device.cpus = sys.text(at / "local_cpulist").value_or("");
  device.link = read_link(sys, at, "current");
  device.own = read_link(sys, at, "max");
  device.most = device.own;
  if (const auto real = sys.real(at)) {
    device.chain = chain_of(*real);
    device.most = lesser(device.most, read_link(sys, real->parent_path(), "max"));
  }
  device.bar1_bytes = largest_window(sys, at);
  read_payload(sys, at, device);
  return device;
}

}  // namespace

std::vector<PciDevice> read_pci(const Sysfs& sys) {
  std::vector<PciDevice> devices;
  for (const std::string& bus_id : sys.list(kDevices)) {
    const fs::path at = fs::path(kDevices) / bus_id;
    const auto vendor = static_cast<std::uint16_t>(sys.whole(at / "vendor").value_or(0));
    if (const auto kind = kind_of(sys.whole(at / "class").value_or(0), vendor))
      devices.push_back(read_device(sys, bus_id, *kind));
  }
  return devices;
}

model::LinkKind path_between(const PciDevice& a, const PciDevice& b) {
  if (a.bus_id == b.bus_id) return model::LinkKind::kSelf;
  const auto [left, right] = std::ranges::mismatch(a.chain, b.chain);
  const auto common = left - a.chain.begin();
  if (common == 0) return a.numa == b.numa ? model::LinkKind::kNode : model::LinkKind::kSys;
  if (common == 1) return model::LinkKind::kPhb;  // the host bridge alone
  // Each further port that only one of the two passes is a bridge more between them.
  const auto own = std::max(a.chain.end() - left, b.chain.end() - right);
  return own <= 1 ? model::LinkKind::kPix : model::LinkKind::kPxb;
}

bool hides_topology(const std::vector<PciDevice>& devices) {
  const auto alone = [](const PciDevice& device) {
    return device.chain.size() <= 1 && !device.numa;
  };
  return devices.size() > 1 && std::ranges::all_of(devices, alone);
}

std::string_view name_of(PciKind kind) {
  switch (kind) {
    case PciKind::kGpu:
      return "gpu";
    case PciKind::kNic:
      return "nic";
    case PciKind::kNvme:
      return "nvme";
    case PciKind::kNvswitch:
      return "nvswitch";
  }
  return "";
}

}  // namespace aliquot::inventory
