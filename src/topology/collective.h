// How long an all-reduce takes, and how traffic shares the wires of a node.
//
// A ring all-reduce of `bytes` over k GPUs sends 2 (k - 1) / k x bytes over every hop, in
// 2 (k - 1) steps (Patarasuk and Yuan 2009; NCCL's ring algorithm), so its slowest hop decides:
//   seconds = 2 (k - 1) / k x bytes / bandwidth + 2 (k - 1) x latency of a hop
//
// Hops that look apart in the link graph may share wires: two GPUs under one switch have one port
// upwards. Fabric holds those wires: a port for each device, each PCIe switch, each root port, the
// link of each NUMA node to the others, and NVLinks. Every wire carries its capacity in each
// direction at once. Traffic divides them max-min fairly: nobody gets more while somebody with less
// could still grow.
//
// Assumed: PCIe ports are x16 of the links' generation; a switch has one port upwards; what the
// text calls PIX lies under one switch, PXB under one root port, PHB under one host bridge, which
// itself is not a bottleneck; NUMA nodes reach each other through one link each, of a SYS path's
// bandwidth; all GPUs behind NVSwitch have all their NVLinks as one port. A path's own bandwidth
// (10 GB/s for PHB) bounds each flow besides.
//
// Leaves to others: which ring (Shape::best_ring). Pure; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "model/topology.h"

namespace aliquot::topology {

double ring_all_reduce_seconds(unsigned gpus, double bytes, double mb_s, double latency_ns = 0);

struct Wire {
  std::string name;  // "GPU0 up", "switch of GPU0,GPU1 down"
  double capacity_mb_s = 0;
};

// What one job sends: for every byte of its rate, `times` bytes over the wire.
struct Traffic {
  struct Use {
    std::size_t wire = 0;
    unsigned times = 1;
  };
  std::vector<Use> uses;    // each wire once
  double most_mb_s = 1e12;  // never faster than this
};

class Fabric {
 public:
  explicit Fabric(const model::NodeTopology& node);

  const std::vector<Wire>& wires() const { return wires_; }

  // From one device to another; devices are the node's GPUs, then its NICs.
  Traffic flow(std::size_t from, std::size_t to) const;
  // From a device to the memory of its NUMA node, and the other way.
  Traffic to_memory(std::size_t device) const;
  Traffic from_memory(std::size_t device) const;
  // Every hop of a ring of GPUs at the same rate, the last one back to the first.
  Traffic ring(const std::vector<unsigned>& gpus) const;

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};
  // A port upwards: wires_[wire] up, wires_[wire + 1] down.
  struct Port {
    std::size_t wire = kNone;
    std::size_t parent = kNone;  // the next port on the way to the other NUMA nodes
    bool between_sockets = false;
  };

  std::size_t add_wires(const std::string& there, const std::string& back, double mb_s);
  void add_pcie();
  void add_nvlinks();
  std::vector<std::size_t> ports_above(std::size_t device) const;
  // Adds the wires of one hop; returns the hop's own bandwidth.
  double add_hop(std::size_t from, std::size_t to, std::vector<unsigned>& times) const;

  model::NodeTopology node_;
  std::vector<Wire> wires_;
  std::vector<Port> ports_;                 // the first device_count() are the devices' own
  std::vector<std::size_t> nvswitch_wire_;  // of each GPU to the switch, the next one back
  std::vector<std::size_t> direct_wire_;    // [a * GPUs + b]: from a to b
};

// The node with one more device behind its NICs, an NVMe drive say, that lies as far from device
// `beside` as `path` says (kPix .. kNode) and from the others as `beside` does, if farther.
model::NodeTopology with_device(const model::NodeTopology& node, const std::string& name,
                                std::size_t beside, model::LinkKind path);

// The max-min fair rate of each, MB/s. Traffic that uses no wire gets what it can at most.
std::vector<double> fair_rates(const std::vector<Wire>& wires, const std::vector<Traffic>& traffic);

// An all-reduce over the ring while `others` use the fabric as fast as they can.
double all_reduce_seconds(const Fabric& fabric, const std::vector<unsigned>& ring, double bytes,
                          const std::vector<Traffic>& others = {});

}  // namespace aliquot::topology
