#include "cli/machine_topology.h"

#include <algorithm>

namespace aliquot::cli {
namespace {

using model::LinkKind;
using simdriver::MachineSpec;
using simdriver::PciePath;

LinkKind kind_of(PciePath path) {
  switch (path) {
    case PciePath::kPix:
      return LinkKind::kPix;
    case PciePath::kPxb:
      return LinkKind::kPxb;
    case PciePath::kPhb:
      return LinkKind::kPhb;
    case PciePath::kNode:
      return LinkKind::kNode;
    default:
      return LinkKind::kSys;
  }
}

model::Link link_between(const MachineSpec& machine, unsigned a, unsigned b) {
  const simdriver::GpuModel& one = machine.model_of(a);
  const simdriver::GpuModel& other = machine.model_of(b);
  const bool joined = a < machine.nvlinks.size() && machine.nvlinks[a][b] > 0;
  if (!joined)
    return model::path_link(kind_of(machine.pcie[a][b]),
                            std::min(one.pcie.generation, other.pcie.generation));
  model::Link link =
      model::nvlink(machine.nvlinks[a][b], std::min(one.nvlink.version, other.nvlink.version),
                    machine.nvswitch ? LinkKind::kNvswitch : LinkKind::kNvlink);
  link.bandwidth_mb_s =
      link.nvlinks * std::min(one.nvlink.link_mb_per_s, other.nvlink.link_mb_per_s);
  return link;
}

}  // namespace

model::NodeTopology topology_of(const MachineSpec& machine) {
  std::vector<model::Device> gpus(machine.gpus.size());
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    gpus[i].name = "GPU" + std::to_string(i);
    gpus[i].description = simdriver::gpu_uuid_text(machine.gpus[i].uuid);
    if (machine.gpus[i].numa < 0) continue;
    gpus[i].numa = machine.gpus[i].numa;
    gpus[i].cpus = machine.numa[static_cast<std::size_t>(machine.gpus[i].numa)].cpus;
  }
  std::vector<model::Device> nics(machine.nics.size());
  for (std::size_t i = 0; i < nics.size(); ++i) nics[i].name = machine.nics[i].name;

  model::NodeTopology node(std::move(gpus), std::move(nics));
  for (unsigned a = 0; a < machine.gpus.size(); ++a) {
    for (unsigned b = 0; b < a; ++b) node.set_link(a, b, link_between(machine, a, b));
    for (std::size_t nic = 0; nic < machine.nics.size(); ++nic)
      node.set_link(a, machine.gpus.size() + nic,
                    model::path_link(kind_of(machine.nics[nic].to_gpu[a]),
                                     machine.model_of(a).pcie.generation));
  }
  // A machine does not say how its NICs lie to each other: as far as two GPUs can.
  for (std::size_t a = 0; a < machine.nics.size(); ++a)
    for (std::size_t b = 0; b < a; ++b)
      node.set_link(machine.gpus.size() + a, machine.gpus.size() + b,
                    model::path_link(LinkKind::kSys));
  return node;
}

}  // namespace aliquot::cli
