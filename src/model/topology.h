// How the GPUs and NICs of one node are connected: every pair of devices has a Link.
//
// Values only. Leaves to others: reading them from a text or a driver (inventory), and choosing
// GPUs by them (topology). Any thread.
//
// A Link carries bandwidth (10^6 bytes a second, one way) and latency; both start as the nominal
// figures of its kind and may be replaced by measured ones. Nominal figures, GB/s one way:
//   NVLink, a link: generation 1 20; 2, 3, 4 25; 5 50 (NVIDIA's pages of P100, V100, A100, H100,
//     B200). A text does not tell the generation: 25.
//   NVLink-C2C 450 (GH200 data sheet, 900 both ways).
//   PCIe x16 below one root port (PIX, PXB) 12, 24, 48 for generations 3, 4, 5: what NCCL reckons
//     with for generation 3, doubled for each one after. Through the CPU (PHB, NODE) 5/6 of it:
//     NCCL charges a peer path through the CPU 6/5.
//   Between sockets (SYS) 6, 16, 22: NCCL's figures for Broadwell's QPI, AMD's and Sapphire
//     Rapids' links, companions of those PCIe generations.
// Latencies are 600 ns for NVLink and 1000 ns for a PCIe switch, as NCCL's tuning has them; what a
// further hop adds is assumed, and only their order matters here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace aliquot::model {

// From near to far, in the words of `nvidia-smi topo -m`; kWeight is a bare number of a matrix.
enum class LinkKind : std::uint8_t {
  kSelf,
  kNvlink,    // NVLinks from chip to chip
  kNvswitch,  // NVLinks to a switch that joins all
  kC2c,       // chip to chip, one package
  kPix,       // at most one PCIe switch
  kPxb,       // several PCIe switches, no host bridge
  kPhb,       // a PCIe host bridge (the CPU)
  kNode,      // between host bridges of one NUMA node
  kSys,       // between NUMA nodes
  kWeight,
};

struct Link {
  LinkKind kind = LinkKind::kSelf;
  std::uint8_t nvlinks = 0;     // NVLinks between the two, counted one way
  std::uint8_t generation = 0;  // of NVLink or PCIe; 0: not told
  std::uint32_t bandwidth_mb_s = 0;
  std::uint32_t latency_ns = 0;

  bool is_nvlink() const { return kind == LinkKind::kNvlink || kind == LinkKind::kNvswitch; }
  bool operator==(const Link&) const = default;
};

// Links with the nominal figures above. `kind` of path_link is one of kC2c .. kSys.
Link nvlink(unsigned count, unsigned generation = 0, LinkKind kind = LinkKind::kNvlink);
Link path_link(LinkKind kind, unsigned pcie_generation = 0);
Link weight_link(std::uint32_t bandwidth_mb_s, std::uint32_t latency_ns = 0);

// "NV12", "PIX", ... as the tool prints it; a weight in GB/s: "300", "12.5".
std::string link_text(const Link& link);
// "300", "12.5": GB/s without needless decimals.
std::string gb_s_text(std::uint64_t mb_s);

struct Device {
  std::string name;         // "GPU0", "NIC0", "mlx5_0"
  std::string description;  // a GPU's UUID, a NIC's name behind "NIC0"; empty where unknown
  std::string cpus;         // "0-23,48-71"; empty where unknown
  std::optional<int> numa;  // NUMA node of those CPUs
  bool operator==(const Device&) const = default;
};

class NodeTopology {
 public:
  NodeTopology() = default;
  // Links start as kSelf and are meant to be set, every pair of them.
  NodeTopology(std::vector<Device> gpus, std::vector<Device> nics);

  std::size_t gpu_count() const { return gpus_.size(); }
  std::size_t nic_count() const { return nics_.size(); }
  const std::vector<Device>& gpus() const { return gpus_; }
  const std::vector<Device>& nics() const { return nics_; }
  Device& gpu(std::size_t i) { return gpus_[i]; }
  Device& nic(std::size_t i) { return nics_[i]; }

  // Devices are the GPUs, then the NICs.
  std::size_t device_count() const { return gpus_.size() + nics_.size(); }
  const Device& device(std::size_t i) const {
    return i < gpus_.size() ? gpus_[i] : nics_[i - gpus_.size()];
  }
  const Link& link(std::size_t a, std::size_t b) const { return links_[a * device_count() + b]; }
  const Link& nic_link(std::size_t gpu, std::size_t nic) const {
    return link(gpu, gpus_.size() + nic);
  }
  // Both directions.
  void set_link(std::size_t a, std::size_t b, const Link& link);

  // Both known and equal.
  bool same_numa(std::size_t a, std::size_t b) const;

  bool operator==(const NodeTopology&) const = default;

 private:
  std::vector<Device> gpus_;
  std::vector<Device> nics_;
  std::vector<Link> links_;  // a square, row by row
};

// More NVLinks on one chip than any generation has are shared by all its peers, so a switch must
// stand between: turns such kNvlink links into kNvswitch.
void mark_nvswitch(NodeTopology& node);

}  // namespace aliquot::model
