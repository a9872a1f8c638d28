// The document's JSON: docs/formats/inventory.md.

#include <algorithm>
#include <utility>

#include "format/described.h"
#include "inventory/document.h"
#include "inventory/topology_text.h"

namespace aliquot::inventory {
namespace {

constexpr int kVersion = 1;

// The value whose name_of() is `text`.
template <typename T>
bool named(std::string_view text, T last, T& out) {
  for (int i = 0; i <= static_cast<int>(last); ++i) {
    out = static_cast<T>(i);
    if (name_of(out) == text) return true;
  }
  return false;
}

}  // namespace

// Beside their types, where format/described.h looks for them.
static std::string to_text(const RdmaKind& kind) { return std::string(name_of(kind)); }
static bool from_text(std::string_view text, RdmaKind& out) {
  return named(text, RdmaKind::kUnknown, out);
}
static std::string to_text(const MpsState& state) { return std::string(name_of(state)); }
static bool from_text(std::string_view text, MpsState& out) {
  return named(text, MpsState::kLeftover, out);
}
static std::string to_text(const GpuDirect& way) { return std::string(name_of(way)); }
static bool from_text(std::string_view text, GpuDirect& out) {
  return named(text, GpuDirect::kDmaBuf, out);
}

template <typename V>
static void describe(V& v, NvmlSystem& system) {
  v("version", system.driver_version);
  v("nvml", system.nvml_version);
  v("cuda", system.cuda_version);
}

template <typename V>
static void describe(V& v, NumaNode& node) {
  v("node", node.node);
  v("cpus", node.cpus);
  v("memory_bytes", node.memory_bytes);
  v("distances", node.distances);
}

template <typename V>
static void describe(V& v, Host& host) {
  v("kernel", host.kernel);
  v("hypervisor", host.hypervisor);
  v("product", host.product);
  v("numa", host.numa);
}

template <typename V>
static void describe(V& v, InventoryGpu& gpu) {
  NvmlGpu& id = gpu.identity;
  v("uuid", id.uuid);
  v("name", id.name);
  v("bus_id", id.bus_id);
  v("serial", id.serial);
  v("minor", id.minor);
  v("numa", id.numa);
  v("cpus", id.cpus);
  v("compute_major", id.compute_major);
  v("compute_minor", id.compute_minor);
  v("pcie_max_generation", id.pcie_max_generation);
  v("pcie_max_width", id.pcie_max_width);
  v("mig_capable", id.mig_capable);
  v("virtualization", id.virtualization);
  v("memory_bytes", gpu.memory_bytes);
  v("bar1_bytes", gpu.bar1_bytes);
  v("mig", gpu.mig);
  v("compute_mode", gpu.compute_mode);
  v("nearest_nic", gpu.nearest_nic);
  v("nearest_nvme", gpu.nearest_nvme);
}

template <typename V>
static void describe(V& v, RdmaPort& port) {
  v("number", port.number);
  v("active", port.active);
  v("ethernet", port.ethernet);
  v("rate_mb_s", port.rate_mb_s);
  v("net_device", port.net_device);
  v("ipv4_gid", port.ipv4_gid);
}

template <typename V>
static void describe(V& v, RdmaDevice& device) {
  v("name", device.name);
  v("kind", device.kind);
  v("software", device.software);
  v("driver", device.driver);
  v("pci", device.pci);
  v("firmware", device.firmware);
  v("node_guid", device.node_guid);
  v("numa", device.numa);
  v("ports", device.ports);
}

template <typename V>
static void describe(V& v, Inventory& all) {
  v("taken_unix_s", all.taken_unix_s);
  v("driver_name", all.driver);
  v("simulated", all.simulated);
  v("driver", all.system);
  v("host", all.host);
  v("mps", all.mps);
  v("gpu_direct", all.gpu_direct);
  v("topology_hidden", all.topology_hidden);
  v("gpus", all.gpus);
  v("nics", all.nics);
}

// One pair of devices; GPUs first, then NICs.
struct LinkRow {
  unsigned from = 0;
  unsigned to = 0;
  model::Link link;
};

static constexpr std::pair<model::LinkKind, std::string_view> kLinkKinds[] = {
    {model::LinkKind::kNvlink, "nvlink"}, {model::LinkKind::kNvswitch, "nvswitch"},
    {model::LinkKind::kC2c, "c2c"},       {model::LinkKind::kPix, "pix"},
    {model::LinkKind::kPxb, "pxb"},       {model::LinkKind::kPhb, "phb"},
    {model::LinkKind::kNode, "node"},     {model::LinkKind::kSys, "sys"},
};

// In model, the room of LinkKind, nobody else needs these words.
struct LinkWord {
  model::LinkKind& kind;
};
static std::string to_text(const LinkWord& word) {
  const auto* const found = std::ranges::find(kLinkKinds, word.kind,
                                              &std::pair<model::LinkKind, std::string_view>::first);
  return found == std::end(kLinkKinds) ? "sys" : std::string(found->second);
}
static bool from_text(std::string_view text, LinkWord& word) {
  const auto* const found =
      std::ranges::find(kLinkKinds, text, &std::pair<model::LinkKind, std::string_view>::second);
  if (found == std::end(kLinkKinds)) return false;
  word.kind = found->first;
  return true;
}

template <typename V>
static void describe(V& v, LinkRow& row) {
  LinkWord kind{row.link.kind};
  v("from", row.from);
  v("to", row.to);
  v("kind", kind);
  v("nvlinks", row.link.nvlinks);
  v("generation", row.link.generation);
  v("bandwidth_mb_s", row.link.bandwidth_mb_s);
  v("latency_ns", row.link.latency_ns);
}

struct Document {
  int version = kVersion;
  Inventory inventory;
  std::vector<LinkRow> links;
};

template <typename V>
static void describe(V& v, Document& document) {
  v("version", document.version);
  describe(v, document.inventory);
  v("links", document.links);
}

namespace {

// The graph that the document's devices and links are; an error where a pair is missing, told
// twice, or names no device.
Result<model::NodeTopology> graph_of(const Document& document, std::string_view where) {
  std::vector<model::Device> gpus;
  std::vector<model::Device> nics;
  for (const InventoryGpu& gpu : document.inventory.gpus)
    gpus.push_back({"GPU" + std::to_string(gpus.size()), gpu.identity.uuid, gpu.identity.cpus,
                    gpu.identity.numa});
  for (const RdmaDevice& nic : document.inventory.nics)
    nics.push_back({"NIC" + std::to_string(nics.size()), nic.name, "", nic.numa});
  model::NodeTopology node(std::move(gpus), std::move(nics));
  const std::size_t count = node.device_count();
  for (const LinkRow& row : document.links) {
    if (row.from >= row.to || row.to >= count ||
        node.link(row.from, row.to).kind != model::LinkKind::kSelf)
      return Error{Errc::kInvalid, std::string(where) + ": links: no such pair, or told twice: " +
                                       std::to_string(row.from) + " " + std::to_string(row.to)};
    node.set_link(row.from, row.to, row.link);
  }
  if (document.links.size() != count * (count - (count > 0 ? 1 : 0)) / 2)
    return Error{Errc::kInvalid, std::string(where) + ": links: not every pair is there"};
  return node;
}

}  // namespace

format::Json to_json(const Inventory& inventory) {
  Document document;
  document.inventory = inventory;
  const model::NodeTopology& node = inventory.topology;
  for (unsigned a = 0; a < node.device_count(); ++a)
    for (unsigned b = a + 1; b < node.device_count(); ++b)
      document.links.push_back({a, b, node.link(a, b)});
  return format::write_described(document);
}

Result<Inventory> parse_inventory(std::string_view text, std::string_view where) {
  const auto json = format::parse_json(text, where);
  if (!json) return json.error();
  // The version first: of another one nothing else can be relied on.
  const format::Json* version = json->find("version");
  if (version == nullptr || !(*version == format::Json(kVersion)))
    return Error{Errc::kInvalid,
                 std::string(where) + ": not an inventory of version " + std::to_string(kVersion)};
  Document document;
  if (Status read = format::read_described(*json, where, document); !read) return read.error();
  auto graph = graph_of(document, where);
  if (!graph) return graph.error();
  document.inventory.topology = std::move(*graph);
  return std::move(document.inventory);
}

}  // namespace aliquot::inventory
