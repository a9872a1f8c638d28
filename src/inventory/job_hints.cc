#include "inventory/job_hints.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <map>
#include <numeric>
#include <optional>

namespace aliquot::inventory {
namespace {

using model::LinkKind;

std::optional<std::size_t> gpu_called(const Inventory& inventory, const std::string& uuid) {
  for (std::size_t i = 0; i < inventory.gpus.size(); ++i)
    if (inventory.gpus[i].identity.uuid == uuid) return i;
  return std::nullopt;
}

const RdmaPort* active_port(const RdmaDevice& device) {
  const auto port = std::ranges::find(device.ports, true, &RdmaPort::active);
  return port == device.ports.end() ? nullptr : &*port;
}

// "0-3,8" as NCCL reads it: hexadecimal words of 32 CPUs, the highest first.
std::string mask_of(std::string_view cpus) {
  std::vector<std::uint32_t> words(1);
  while (!cpus.empty()) {
    unsigned first = 0;
    const char* end = cpus.data() + cpus.size();
    auto read = std::from_chars(cpus.data(), end, first);
    if (read.ec != std::errc{}) break;
    unsigned last = first;
    if (read.ptr != end && *read.ptr == '-') read = std::from_chars(read.ptr + 1, end, last);
    for (unsigned cpu = first; cpu <= last && cpu < first + 4096; ++cpu) {
      if (words.size() <= cpu / 32) words.resize(cpu / 32 + 1);
      words[cpu / 32] |= 1u << cpu % 32;
    }
    cpus.remove_prefix(static_cast<std::size_t>(read.ptr - cpus.data()));
    if (cpus.starts_with(',')) cpus.remove_prefix(1);
  }
  std::string text;
  for (auto word = words.rbegin(); word != words.rend(); ++word) {
    std::array<char, 16> hex{};
    std::snprintf(hex.data(), hex.size(), "%08x", *word);
    text += (text.empty() ? "" : ",") + std::string(hex.data());
  }
  return text;
}

// A device as a leaf of NCCL's tree.
struct Leaf {
  std::size_t device = 0;  // in the topology
  int numa = 0;
  std::string bus_id;  // "0000:07:00.0"
  const char* pci_class = "";
};

// Sysfs's form: a domain of four digits, lower case.
std::string sysfs_bus_id(std::string bus_id) {
  std::ranges::transform(bus_id, bus_id.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return bus_id.size() > 12 ? bus_id.substr(bus_id.size() - 12) : bus_id;
}

std::vector<Leaf> leaves_of(const Inventory& inventory, const std::vector<std::string>& uuids,
                            const std::vector<const RdmaDevice*>& hcas) {
  std::vector<Leaf> leaves;
  for (const std::string& uuid : uuids)
    if (const auto gpu = gpu_called(inventory, uuid)) {
      const NvmlGpu& identity = inventory.gpus[*gpu].identity;
      leaves.push_back(
          {*gpu, identity.numa.value_or(0), sysfs_bus_id(identity.bus_id), "0x030200"});
    }
  for (const RdmaDevice* hca : hcas) {
    const auto at = static_cast<std::size_t>(hca - inventory.nics.data());
    leaves.push_back({inventory.topology.gpu_count() + at, hca->numa.value_or(0), hca->pci,
                      hca->kind == RdmaKind::kInfiniband ? "0x020700" : "0x020000"});
  }
  return leaves;
}

// Which leaves are below one switch: by every known link that is at most that far, in a chain.
std::vector<std::size_t> groups(const Inventory& inventory, const std::vector<Leaf>& leaves,
                                LinkKind farthest) {
  std::vector<std::size_t> group(leaves.size());
  std::iota(group.begin(), group.end(), std::size_t{0});
  for (std::size_t a = 0; a < leaves.size(); ++a)
    for (std::size_t b = 0; b < a; ++b) {
      const LinkKind kind = inventory.topology.link(leaves[a].device, leaves[b].device).kind;
      if (kind != LinkKind::kPix && kind != farthest) continue;
      const std::size_t from = group[a], to = group[b];
      for (std::size_t& one : group)
        if (one == from) one = to;
    }
  return group;
}

class Tree {
 public:
  Tree(const Inventory& inventory, const std::vector<Leaf>& leaves)
      : leaves_(leaves),
        near_(groups(inventory, leaves, LinkKind::kPix)),
        far_(groups(inventory, leaves, LinkKind::kPxb)) {
    text_ = "<system version=\"1\">\n";
    std::map<int, std::string> nodes;  // NUMA node -> its CPUs
    for (const NumaNode& node : inventory.host.numa) nodes[node.node] = node.cpus;
    for (const Leaf& leaf : leaves) nodes.emplace(leaf.numa, "");
    for (const auto& [numa, cpus] : nodes) add_cpu(numa, cpus);
    text_ += "</system>\n";
  }
  std::string take() { return std::move(text_); }

 private:
  void add_cpu(int numa, const std::string& cpus) {
    std::vector<std::size_t> here;
    for (std::size_t i = 0; i < leaves_.size(); ++i)
      if (leaves_[i].numa == numa) here.push_back(i);
    if (here.empty()) return;
    text_ += "  <cpu numaid=\"" + std::to_string(numa) + "\"" +
             (cpus.empty() ? "" : " affinity=\"" + mask_of(cpus) + "\"") + ">\n";
    add_below(here, far_, 2);
    text_ += "  </cpu>\n";
  }

  // Leaves of one group get a bridge above them; one alone needs none.
  void add_below(const std::vector<std::size_t>& here, const std::vector<std::size_t>& group,
                 unsigned depth) {
    std::map<std::size_t, std::vector<std::size_t>> by_group;
    for (const std::size_t leaf : here) by_group[group[leaf]].push_back(leaf);
    for (const auto& [number, members] : by_group) {
      if (members.size() == 1) {
        add_leaf(leaves_[members[0]], depth);
        continue;
      }
      const bool outer = &group == &far_ && !all_near(members);
      open_bridge(depth);
      if (outer)
        add_below(members, near_, depth + 1);
      else
        for (const std::size_t leaf : members) add_leaf(leaves_[leaf], depth + 1);
      text_ += indent(depth) + "</pci>\n";
    }
  }

  bool all_near(const std::vector<std::size_t>& members) const {
    return std::ranges::all_of(members,
                               [&](std::size_t leaf) { return near_[leaf] == near_[members[0]]; });
  }

  static std::string indent(unsigned depth) { return std::string(std::size_t{2} * depth, ' '); }

  // Bridges have numbers of their own, on a bus that no machine has.
  void open_bridge(unsigned depth) {
    std::array<char, 96> line{};
    std::snprintf(line.data(), line.size(), "<pci busid=\"ffff:ff:%02x.0\" class=\"0x060400\">\n",
                  ++bridges_ & 0x1f);
    text_ += indent(depth) + line.data();
  }

  void add_leaf(const Leaf& leaf, unsigned depth) {
    text_ +=
        indent(depth) + "<pci busid=\"" + leaf.bus_id + "\" class=\"" + leaf.pci_class + "\"/>\n";
  }

  const std::vector<Leaf>& leaves_;
  std::vector<std::size_t> near_, far_;
  std::string text_;
  unsigned bridges_ = 0;
};

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

}  // namespace

std::vector<const RdmaDevice*> near_hcas(const Inventory& inventory,
                                         const std::vector<std::string>& uuids) {
  std::vector<const RdmaDevice*> hcas;
  for (const std::string& uuid : uuids) {
    const auto gpu = gpu_called(inventory, uuid);
    if (!gpu) continue;
    const auto nic =
        std::ranges::find(inventory.nics, inventory.gpus[*gpu].nearest_nic, &RdmaDevice::name);
    if (nic == inventory.nics.end() || nic->software || active_port(*nic) == nullptr) continue;
    const auto at = static_cast<std::size_t>(nic - inventory.nics.begin());
    if (at < inventory.topology.nic_count() && *gpu < inventory.topology.gpu_count() &&
        inventory.topology.nic_link(*gpu, at).kind == LinkKind::kSys)
      continue;
    if (std::ranges::find(hcas, &*nic) == hcas.end()) hcas.push_back(&*nic);
  }
  return hcas;
}

std::string nccl_hca_list(const std::vector<const RdmaDevice*>& hcas) {
  std::string list;
  for (const RdmaDevice* hca : hcas) {
    const RdmaPort* port = active_port(*hca);
    list += (list.empty() ? "=" : ",") + hca->name;
    if (port != nullptr) list += ":" + std::to_string(port->number);
  }
  return list;
}

std::string nccl_topology(const Inventory& inventory, const std::vector<std::string>& uuids,
                          const std::vector<const RdmaDevice*>& hcas) {
  const bool known = inventory.topology.gpu_count() == inventory.gpus.size() &&
                     inventory.topology.nic_count() == inventory.nics.size();
  const auto leaves = leaves_of(inventory, uuids, hcas);
  if (!known || leaves.empty()) return "";
  return Tree(inventory, leaves).take();
}

std::vector<std::string> verbs_nodes(const Sysfs& sys, const std::vector<const RdmaDevice*>& hcas) {
  std::vector<std::string> nodes;
  const std::filesystem::path verbs = "class/infiniband_verbs";
  for (const std::string& entry : sys.list(verbs)) {
    const auto device = sys.text(verbs / entry / "ibdev");
    if (device && std::ranges::any_of(hcas, [&](const auto* hca) { return hca->name == *device; }))
      nodes.push_back("/dev/infiniband/" + entry);
  }
  std::ranges::sort(nodes);
  return nodes;
}

CompatAdvice compat_advice(int driver_cuda, int image_cuda, bool data_center) {
  const std::string image = "CUDA " + version_text(image_cuda);
  const std::string driver = "the driver's " + version_text(driver_cuda);
  if (image_cuda == 0 || driver_cuda == 0)
    return {false, true, "a version is not known: the driver's own library is used"};
  if (image_cuda <= driver_cuda)
    return {false, true, image + " is not newer than " + driver + ": a driver runs older images"};
  if (image_cuda / 1000 == driver_cuda / 1000 && driver_cuda >= 11000)
    return {false, true,
            image + " and " + driver +
                " are of one major version: compatible, but for PTX that must be compiled anew"};
  if (!data_center)
    return {
        false, false,
        image + " is beyond what " + driver +
            " and forward compatibility is offered for data-center GPUs only: update the driver"};
  return {true, true,
          image + " is beyond what " + driver +
              ": its forward-compat libraries stand in for the driver's"};
}

int cuda_version_of(std::string_view text) {
  int major = 0, minor = 0;
  const char* end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, major);
  if (first.ec != std::errc{} || first.ptr == end || *first.ptr != '.') return 0;
  const auto second = std::from_chars(first.ptr + 1, end, minor);
  if (second.ec != std::errc{} || major < 1 || major > 99 || minor < 0 || minor > 99) return 0;
  return major * 1000 + minor * 10;
}

bool is_data_center(std::string_view gpu_name) {
  for (const char* consumer : {"GeForce", "TITAN", "GTX"})
    if (gpu_name.find(consumer) != std::string_view::npos) return false;
  return true;
}

}  // namespace aliquot::inventory
