// The RDMA devices of a machine, as /sys/class/infiniband tells them: kind, ports, nearness.
//
// A device is judged by link layer, node type and driver together, because one driver serves
// several protocols (irdma: RoCE or iWARP; erdma: its own or RoCE) and an iWARP node type alone
// does not name eRDMA. Software devices (rxe, siw) work on the CPU: they are labelled so and never
// count as GPUDirect-capable. Leaves to others: nearness to a GPU (pci.h). Any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "inventory/sysfs.h"

namespace aliquot::inventory {

enum class RdmaKind : std::uint8_t {
  kInfiniband,
  kRoceV1,
  kRoceV2,
  kIwarp,
  kErdma,
  kEfa,
  kUnknown
};

struct RdmaPort {
  unsigned number = 1;
  bool active = false;
  bool ethernet = false;
  std::uint32_t rate_mb_s = 0;  // 10^6 bytes a second; 0: not told
  std::string net_device;       // "eth2" beneath an Ethernet port; empty: none
  // The index of the GID that RoCE v2 over IPv4 uses (NCCL_IB_GID_INDEX); nullopt: none.
  std::optional<unsigned> ipv4_gid;
  bool operator==(const RdmaPort&) const = default;
};

struct RdmaDevice {
  std::string name;  // "mlx5_0"
  RdmaKind kind = RdmaKind::kUnknown;
  bool software = false;  // rxe, siw
  std::string driver;     // "mlx5_core"; empty: a software device
  std::string pci;        // "0000:0c:00.0"; empty: a software device
  std::string firmware;
  std::string node_guid;
  std::optional<int> numa;
  std::vector<RdmaPort> ports;
  bool operator==(const RdmaDevice&) const = default;
};

// How a NIC can reach GPU memory without the CPU's.
enum class GpuDirect : std::uint8_t {
  kNone,
  kPeermem,  // nvidia-peermem (or the older nv_peer_mem) is loaded
  kDmaBuf,   // the kernel has what the dma-buf way needs; the driver decides at registration
};

std::vector<RdmaDevice> read_rdma(const Sysfs& sys);
// `kernel_release` as uname says it: dma-buf needs 5.12.
GpuDirect read_gpu_direct(const Sysfs& sys, std::string_view kernel_release);

std::string_view name_of(RdmaKind kind);
std::string_view name_of(GpuDirect way);

}  // namespace aliquot::inventory
