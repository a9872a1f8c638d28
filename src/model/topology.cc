#include "model/topology.h"

#include <array>
#include <cassert>
#include <utility>

namespace aliquot::model {
namespace {

// A chip has at most 4, 6, 12, 18, 18 NVLinks (generations 1 to 5).
constexpr unsigned kMostNvlinksOfAChip = 18;

std::uint32_t nvlink_mb_s(unsigned generation) {
  switch (generation) {
    case 1:
      return 20'000;
    case 5:
      return 50'000;
    default:
      return 25'000;
  }
}

struct PcieFigures {
  std::uint32_t root_port_mb_s;
  std::uint32_t cpu_mb_s;
  std::uint32_t socket_mb_s;
};

PcieFigures pcie_figures(unsigned generation) {
  if (generation <= 3) return {12'000, 10'000, 6'000};
  if (generation == 4) return {24'000, 20'000, 16'000};
  return {48'000, 40'000, 22'000};
}

}  // namespace

Link nvlink(unsigned count, unsigned generation, LinkKind kind) {
  assert(kind == LinkKind::kNvlink || kind == LinkKind::kNvswitch);
  Link link;
  link.kind = kind;
  link.nvlinks = static_cast<std::uint8_t>(count);
  link.generation = static_cast<std::uint8_t>(generation);
  link.bandwidth_mb_s = count * nvlink_mb_s(generation);
  link.latency_ns = 600;
  return link;
}

Link path_link(LinkKind kind, unsigned pcie_generation) {
  const PcieFigures pcie = pcie_figures(pcie_generation);
  const auto made = [&](std::uint32_t mb_s, std::uint32_t ns) {
    return Link{kind, 0, static_cast<std::uint8_t>(pcie_generation), mb_s, ns};
  };
  switch (kind) {
    case LinkKind::kC2c:
      return made(450'000, 600);
    case LinkKind::kPix:
      return made(pcie.root_port_mb_s, 1'000);
    case LinkKind::kPxb:
      return made(pcie.root_port_mb_s, 1'200);
    case LinkKind::kPhb:
      return made(pcie.cpu_mb_s, 1'500);
    case LinkKind::kNode:
      return made(pcie.cpu_mb_s, 1'700);
    default:
      assert(kind == LinkKind::kSys);
      return made(pcie.socket_mb_s, 2'200);
  }
}

Link weight_link(std::uint32_t bandwidth_mb_s, std::uint32_t latency_ns) {
  return {LinkKind::kWeight, 0, 0, bandwidth_mb_s, latency_ns};
}

std::string gb_s_text(std::uint64_t mb_s) {
  std::string text = std::to_string(mb_s / 1000);
  std::string decimals = std::to_string(1000 + mb_s % 1000).substr(1);
  while (!decimals.empty() && decimals.back() == '0') decimals.pop_back();
  return decimals.empty() ? text : text + "." + decimals;
}

std::string link_text(const Link& link) {
  switch (link.kind) {
    case LinkKind::kSelf:
      return "X";
    case LinkKind::kNvlink:
    case LinkKind::kNvswitch:
      return "NV" + std::to_string(link.nvlinks);
    case LinkKind::kC2c:
      return "C2C";
    case LinkKind::kPix:
      return "PIX";
    case LinkKind::kPxb:
      return "PXB";
    case LinkKind::kPhb:
      return "PHB";
    case LinkKind::kNode:
      return "NODE";
    case LinkKind::kSys:
      return "SYS";
    case LinkKind::kWeight:
      return gb_s_text(link.bandwidth_mb_s);
  }
  return "?";
}

NodeTopology::NodeTopology(std::vector<Device> gpus, std::vector<Device> nics)
    : gpus_(std::move(gpus)), nics_(std::move(nics)), links_(device_count() * device_count()) {}

void NodeTopology::set_link(std::size_t a, std::size_t b, const Link& link) {
  links_[a * device_count() + b] = link;
  links_[b * device_count() + a] = link;
}

bool NodeTopology::same_numa(std::size_t a, std::size_t b) const {
  return device(a).numa.has_value() && device(a).numa == device(b).numa;
}

void mark_nvswitch(NodeTopology& node) {
  std::vector<unsigned> nvlinks(node.gpu_count(), 0);
  for (std::size_t a = 0; a < node.gpu_count(); ++a)
    for (std::size_t b = 0; b < node.gpu_count(); ++b) nvlinks[a] += node.link(a, b).nvlinks;
  for (std::size_t a = 0; a < node.gpu_count(); ++a)
    for (std::size_t b = 0; b < a; ++b) {
      Link link = node.link(a, b);
      if (link.kind != LinkKind::kNvlink) continue;
      if (nvlinks[a] <= kMostNvlinksOfAChip || nvlinks[b] <= kMostNvlinksOfAChip) continue;
      link.kind = LinkKind::kNvswitch;
      node.set_link(a, b, link);
    }
}

}  // namespace aliquot::model
