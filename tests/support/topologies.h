// Link graphs of known machines and random ones, for tests. Written as data, not read from texts,
// so that rooms below the readers can use them.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "model/topology.h"

namespace aliquot::test {

// One character a pair, rows parted by blanks: 1-9 NVLinks, S SYS, N NODE, H PHB, B PXB, P PIX, the
// diagonal anything. `numa_size` GPUs share a NUMA node; 0: unknown.
inline model::NodeTopology topology_of(const std::vector<std::string>& rows,
                                       unsigned numa_size = 0) {
  std::vector<model::Device> gpus(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    gpus[i].name = "GPU" + std::to_string(i);
    if (numa_size > 0) gpus[i].numa = static_cast<int>(i / numa_size);
  }
  model::NodeTopology node(gpus, {});
  for (std::size_t a = 0; a < rows.size(); ++a)
    for (std::size_t b = 0; b < a; ++b) {
      using model::LinkKind;
      const char c = rows[a][b];
      const LinkKind path = c == 'S'   ? LinkKind::kSys
                            : c == 'N' ? LinkKind::kNode
                            : c == 'H' ? LinkKind::kPhb
                            : c == 'B' ? LinkKind::kPxb
                                       : LinkKind::kPix;
      const bool nvlinks = c >= '1' && c <= '9';
      node.set_link(
          a, b,
          nvlinks ? model::nvlink(static_cast<unsigned>(c - '0'), 2) : model::path_link(path));
    }
  return node;
}

// DGX-1 with V100s: a hybrid cube mesh, six NVLinks a GPU.
inline model::NodeTopology dgx1_v100() {
  return topology_of({"X1122SSS", "1X21S2SS", "12X2SS1S", "212XSSS1", "2SSSX112", "S2SS1X21",
                      "SS1S12X2", "SSS1212X"},
                     4);
}

// DGX-1 with P100s: the same mesh with single links (four a GPU).
inline model::NodeTopology dgx1_p100() {
  return topology_of({"X1111SSS", "1X11S1SS", "11X1SS1S", "111XSSS1", "1SSSX111", "S1SS1X11",
                      "SS1S11X1", "SSS1111X"},
                     4);
}

// Eight GPUs behind NVSwitch, two NUMA nodes.
inline model::NodeTopology hgx(unsigned nvlinks) {
  std::vector<model::Device> gpus(8);
  for (std::size_t i = 0; i < 8; ++i) gpus[i].numa = static_cast<int>(i / 4);
  model::NodeTopology node(gpus, {});
  for (std::size_t a = 0; a < 8; ++a)
    for (std::size_t b = 0; b < a; ++b) node.set_link(a, b, model::nvlink(nvlinks));
  model::mark_nvswitch(node);
  return node;
}

// Three workstation cards, one NVLink bridge between 0 and 1.
inline model::NodeTopology one_bridge() { return topology_of({"X4N", "4XN", "NNX"}, 3); }

// Eight cards in pairs under switches, two pairs a socket.
inline model::NodeTopology pcie_tree() {
  return topology_of({"XPHHSSSS", "PXHHSSSS", "HHXPSSSS", "HHPXSSSS", "SSSSXPHH", "SSSSPXHH",
                      "SSSSHHXP", "SSSSHHPX"},
                     4);
}

// GPUs behind NVSwitch, each with a NIC of its own under its PCIe switch.
inline model::NodeTopology railed(unsigned gpus) {
  const std::vector<model::Device> devices(gpus);
  model::NodeTopology node(devices, devices);
  for (std::size_t a = 0; a < 2 * gpus; ++a)
    for (std::size_t b = 0; b < a; ++b)
      node.set_link(a, b,
                    a < gpus        ? model::nvlink(12)
                    : a - gpus == b ? model::path_link(model::LinkKind::kPix)
                                    : model::path_link(model::LinkKind::kNode));
  model::mark_nvswitch(node);
  return node;
}

// Eight GPUs behind NVSwitch with two NICs, one a socket, each below the root port of two GPUs.
inline model::NodeTopology two_nics() {
  using model::LinkKind;
  std::vector<model::Device> gpus(8);
  std::vector<model::Device> nics(2);
  for (std::size_t i = 0; i < 8; ++i) gpus[i].numa = static_cast<int>(i / 4);
  for (std::size_t i = 0; i < 2; ++i) nics[i].numa = static_cast<int>(i);
  model::NodeTopology node(gpus, nics);
  for (std::size_t a = 0; a < 8; ++a) {
    for (std::size_t b = 0; b < a; ++b) node.set_link(a, b, model::nvlink(12));
    for (std::size_t nic = 0; nic < 2; ++nic) {
      const LinkKind kind = a / 4 != nic ? LinkKind::kSys
                            : a % 4 < 2  ? LinkKind::kPxb
                                         : LinkKind::kNode;
      node.set_link(a, 8 + nic, model::path_link(kind));
    }
  }
  node.set_link(8, 9, model::path_link(LinkKind::kSys));
  model::mark_nvswitch(node);
  return node;
}

// The 4-ring 0-1-3-2 of 300s with weak diagonals 0-3 and 1-2.
inline model::NodeTopology four_ring() {
  model::NodeTopology node(std::vector<model::Device>(4), {});
  for (std::size_t a = 0; a < 4; ++a)
    for (std::size_t b = 0; b < a; ++b)
      node.set_link(a, b, model::weight_link(a + b == 3 ? 50'000 : 300'000));
  return node;
}

// Random pairs out of `kinds` different bandwidths, latencies too, with NUMA nodes and NICs.
inline model::NodeTopology random_topology(std::mt19937_64& random, unsigned gpus, unsigned kinds) {
  const auto up_to = [&](std::uint64_t n) { return random() % n; };
  std::vector<model::Device> devices(gpus);
  for (model::Device& device : devices) {
    const std::uint64_t numa = up_to(3);
    if (numa < 2) device.numa = static_cast<int>(numa);
  }
  model::NodeTopology node(devices, std::vector<model::Device>(2));
  for (std::size_t a = 0; a < gpus; ++a) {
    for (std::size_t b = 0; b < a; ++b) {
      const auto weight = static_cast<std::uint32_t>(1000 * up_to(kinds));
      node.set_link(a, b, model::weight_link(weight, static_cast<std::uint32_t>(up_to(3) * 100)));
      if (up_to(3) == 0) node.set_link(a, b, model::nvlink(1 + static_cast<unsigned>(up_to(2)), 1));
    }
    for (std::size_t nic = 0; nic < 2; ++nic) {
      const auto kind =
          static_cast<model::LinkKind>(static_cast<int>(model::LinkKind::kPix) + up_to(5));
      node.set_link(a, gpus + nic, model::path_link(kind));
    }
  }
  return node;
}

}  // namespace aliquot::test
