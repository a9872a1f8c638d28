#include "inventory/rdma.h"

#include <charconv>
#include <cmath>

namespace aliquot::inventory {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kClass = "class/infiniband";
constexpr unsigned kNodeTypeRnic = 4;  // include/rdma/ib_verbs.h: rdma_node_type

bool has_software_name(std::string_view name) {
  return name.starts_with("rxe") || name.starts_with("siw");
}

// The GIDs that are set, by type: v1 and v2 of one address are two entries.
struct Gids {
  bool v1 = false;
  bool v2 = false;
  std::optional<unsigned> ipv4_v2;
};

Gids read_gids(const Sysfs& sys, const fs::path& port) {
  Gids gids;
  for (const std::string& index : sys.list(port / "gids")) {
    const auto type = sys.text(port / "gid_attrs/types" / index);
    if (!type) continue;
    if (*type != "RoCE v2") {
      gids.v1 = true;
      continue;
    }
    gids.v2 = true;
    const auto gid = sys.text(port / "gids" / index);
    unsigned number = 0;
    std::from_chars(index.data(), index.data() + index.size(), number);
    if (gid && gid->starts_with("0000:0000:0000:0000:0000:ffff:") && !gids.ipv4_v2)
      gids.ipv4_v2 = number;
  }
  return gids;
}

RdmaPort read_port(const Sysfs& sys, const fs::path& path, std::string_view number) {
  RdmaPort port;
  std::from_chars(number.data(), number.data() + number.size(), port.number);
  port.active = sys.whole(path / "state") == 4;
  port.ethernet = sys.text(path / "link_layer") == "Ethernet";
  // "100 Gb/sec (4X EDR)", "2.5 Gb/sec (1X SDR)"
  if (const auto gigabits = sys.number(path / "rate"))
    port.rate_mb_s = static_cast<std::uint32_t>(std::lround(*gigabits * 1000 / 8));
  if (!port.ethernet) return port;
  port.net_device = sys.text(path / "gid_attrs/ndevs/0").value_or("");
  port.ipv4_gid = read_gids(sys, path).ipv4_v2;
  return port;
}

RdmaKind judge(const Sysfs& sys, const fs::path& at, const RdmaDevice& device) {
  const auto node_type = sys.whole(at / "node_type");
  if (device.driver == "efa") return RdmaKind::kEfa;
  if (device.ports.empty() || !node_type) return RdmaKind::kUnknown;
  if (!device.ports.front().ethernet) return RdmaKind::kInfiniband;
  if (*node_type == kNodeTypeRnic)
    return device.driver == "erdma" ? RdmaKind::kErdma : RdmaKind::kIwarp;
  if (*node_type != 1) return RdmaKind::kUnknown;
  for (const RdmaPort& port : device.ports)
    if (read_gids(sys, at / "ports" / std::to_string(port.number)).v2) return RdmaKind::kRoceV2;
  return RdmaKind::kRoceV1;
}

}  // namespace

std::vector<RdmaDevice> read_rdma(const Sysfs& sys) {
  std::vector<RdmaDevice> devices;
  for (const std::string& name : sys.list(kClass)) {
    const fs::path at = fs::path(kClass) / name;
    RdmaDevice device;
    device.name = name;
    device.driver = sys.link_name(at / "device/driver").value_or("");
    device.software = device.driver.empty() && (sys.has(at / "parent") || has_software_name(name));
    if (const auto real = sys.real(at / "device")) device.pci = real->filename();
    device.firmware = sys.text(at / "fw_ver").value_or("");
    device.node_guid = sys.text(at / "node_guid").value_or("");
    if (const auto numa = sys.whole(at / "device/numa_node"); numa && *numa >= 0)
      device.numa = static_cast<int>(*numa);
    for (const std::string& port : sys.list(at / "ports"))
      device.ports.push_back(read_port(sys, at / "ports" / port, port));
    device.kind = judge(sys, at, device);
    devices.push_back(std::move(device));
  }
  return devices;
}

GpuDirect read_gpu_direct(const Sysfs& sys, std::string_view kernel_release) {
  for (const char* module :
       {"kernel/mm/memory_peers/nv_mem/version", "kernel/mm/memory_peers/nv_mem_nc/version",
        "module/nvidia_peermem/version", "module/nv_peer_mem/version"})
    if (sys.has(module)) return GpuDirect::kPeermem;
  unsigned major = 0, minor = 0;
  const char* const end = kernel_release.data() + kernel_release.size();
  const auto first = std::from_chars(kernel_release.data(), end, major);
  if (first.ec == std::errc{} && first.ptr != end) std::from_chars(first.ptr + 1, end, minor);
  const bool new_enough = major > 5 || (major == 5 && minor >= 12);
  return new_enough && sys.has("module/nvidia") ? GpuDirect::kDmaBuf : GpuDirect::kNone;
}

std::string_view name_of(RdmaKind kind) {
  switch (kind) {
    case RdmaKind::kInfiniband:
      return "InfiniBand";
    case RdmaKind::kRoceV1:
      return "RoCE v1";
    case RdmaKind::kRoceV2:
      return "RoCE v2";
    case RdmaKind::kIwarp:
      return "iWARP";
    case RdmaKind::kErdma:
      return "eRDMA";
    case RdmaKind::kEfa:
      return "EFA";
    case RdmaKind::kUnknown:
      return "unknown";
  }
  return "";
}

std::string_view name_of(GpuDirect way) {
  switch (way) {
    case GpuDirect::kNone:
      return "none";
    case GpuDirect::kPeermem:
      return "peermem";
    case GpuDirect::kDmaBuf:
      return "dma-buf";
  }
  return "";
}

}  // namespace aliquot::inventory
