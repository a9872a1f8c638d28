#include "cli/replay_cluster.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "cli/machine_topology.h"
#include "common/files.h"
#include "inventory/domain_objects.h"
#include "replay/openb.h"
#include "replay/public_traces.h"
#include "simdriver/presets.h"
#include "topology/domains.h"
#include "topology/topology_conf.h"

namespace aliquot::cli {
namespace {

namespace fs = std::filesystem;

constexpr unsigned kMostNodes = 50'000;
// Of hosts that a preset does not describe: enough not to be what a job waits for.
constexpr std::int64_t kCpuMilliPerGpu = 16'000;
constexpr model::Bytes kMemoryPerGpu = model::Bytes{128} << 30;

struct Counted {
  std::string preset;
  unsigned nodes = 1;
};

// "a100x8x4" -> four of a100x8. A preset's own name, "a100x8", is one of it.
Result<Counted> counted_of(const std::string& text, const std::vector<std::string>& presets) {
  if (std::ranges::find(presets, text) != presets.end()) return Counted{text, 1};
  const std::size_t mark = text.rfind('x');
  if (mark == std::string::npos || mark == 0) return Counted{text, 1};
  unsigned nodes = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + mark + 1, end, nodes);
  if (error == std::errc::invalid_argument || stop != end) return Counted{text, 1};
  if (error != std::errc{} || nodes == 0 || nodes > kMostNodes)
    return Error{Errc::kInvalid,
                 "--cluster " + text + ": 1 to " + std::to_string(kMostNodes) + " nodes"};
  return Counted{text.substr(0, mark), nodes};
}

model::NodeSpec node_of(const simdriver::MachineSpec& machine) {
  const simdriver::GpuModel& gpu = machine.model_of(0);
  model::NodeSpec node;
  node.gpu_count = static_cast<int>(machine.gpus.size());
  node.cpu_milli = kCpuMilliPerGpu * node.gpu_count;
  node.memory_bytes = kMemoryPerGpu * node.gpu_count;
  node.gpu = {gpu.name, gpu.compute_capability.major * 10 + gpu.compute_capability.minor,
              static_cast<model::Bytes>(gpu.memory.driver_total_bytes), 0};
  node.topology = machine.preset;
  return node;
}

Result<replay::Cluster> from_preset(const std::string& text) {
  const auto simulator = simdriver::simulator_directory();
  if (!simulator) return simulator.error();
  const auto presets = simdriver::preset_names(*simulator);
  if (!presets) return presets.error();
  const Result<Counted> counted = counted_of(text, *presets);
  if (!counted) return counted.error();
  const auto machine = simdriver::make_machine({counted->preset, {}, {}}, *simulator);
  if (!machine)
    return Error{machine.error().code, "--cluster " + text + ": no such file, and as PRESETxN: " +
                                           machine.error().message};
  if (machine->gpus.size() > static_cast<std::size_t>(model::kMaxGpusPerNode))
    return Error{Errc::kInvalid, "--cluster " + text + ": a node has at most " +
                                     std::to_string(model::kMaxGpusPerNode) + " GPUs"};
  model::NodeSpec node = node_of(*machine);
  replay::Cluster cluster;
  cluster.name = text;
  cluster.topologies.emplace(node.topology, topology_of(*machine));
  for (unsigned i = 0; i < counted->nodes; ++i) {
    node.name = counted->preset + "-" + std::to_string(i);
    cluster.nodes.push_back(node);
  }
  cluster.assumptions = {
      "The nodes are simulated machines. A preset describes no host, so each is taken to have 16 "
      "CPU cores and 128 GiB of memory a GPU, and 110 jobs at most."};
  return cluster;
}

}  // namespace

Result<replay::Cluster> cluster_of(const std::string& text) {
  std::error_code failed;
  if (!fs::is_regular_file(text, failed)) {
    if (text.find('/') != std::string::npos || text.ends_with(".csv"))
      return Error{Errc::kNotFound, "--cluster " + text + ": no such file"};
    return from_preset(text);
  }
  const Result<std::string> list = read_file(text);
  if (!list) return list.error();
  const std::string file = fs::path(text).filename().string();
  const bool spot = replay::is_spot_nodes(*list);
  auto nodes =
      spot ? replay::parse_spot_nodes(*list, file) : replay::parse_openb_nodes(*list, file);
  if (!nodes) return nodes.error();
  if (nodes->empty()) return Error{Errc::kInvalid, "--cluster " + text + ": has no nodes"};
  replay::Cluster cluster{file, *std::move(nodes), {}, {}};
  if (spot)
    cluster.assumptions.emplace_back(
        "The node list does not tell the hosts' memory: each is taken to have 8 GiB a CPU core.");
  if (std::ranges::any_of(cluster.nodes, [](const model::NodeSpec& node) {
        return node.gpu_count > 0 && node.gpu.memory_bytes == 0;
      }))
    cluster.assumptions.emplace_back(
        "The node list does not tell the GPUs' memory: use counts compute only, "
        "and jobs that ask GPU memory are refused there.");
  cluster.assumptions.emplace_back(
      "The node list tells no links between GPUs: the policy topology takes all pairs for equal.");
  return cluster;
}

Result<replay::Cluster> cluster_beside(const fs::path& trace) {
  const fs::path beside = trace.parent_path() / "cluster.csv";
  std::error_code failed;
  if (fs::is_regular_file(beside, failed)) return cluster_of(beside.string());
  return Error{Errc::kNotFound, "no cluster.csv beside " + trace.string() +
                                    ": name a cluster by --cluster FILE, or a100x8x4"};
}

namespace {

Result<std::vector<model::HostPath>> paths_of(const std::string& text, const std::string& name) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos || (text[first] != '{' && text[first] != '['))
    return topology::parse_topology_conf(text, name);
  const auto objects = inventory::parse_domain_objects(text, name);
  if (!objects) return objects.error();
  if (objects->hosts.empty())
    return Error{Errc::kInvalid, name + ": holds no Node objects (kubectl get nodes,hypernodes)"};
  if (!objects->hyper_nodes.empty())
    return topology::paths_by_hyper_nodes(objects->hosts, objects->hyper_nodes);
  std::vector<std::string> levels = objects->levels;
  // The node with most levels knows them all; others may lack some.
  for (const model::LabelledHost& host : objects->hosts)
    if (std::vector<std::string> known = topology::known_levels(host.labels);
        objects->levels.empty() && known.size() > levels.size())
      levels = std::move(known);
  if (levels.empty())
    return Error{Errc::kInvalid, name +
                                     ": no node has a label of a known kind, and there is no "
                                     "Topology that names others"};
  std::vector<model::HostPath> paths;
  for (const model::LabelledHost& host : objects->hosts)
    paths.push_back(topology::path_by_labels(host.name, host.labels, levels));
  return paths;
}

}  // namespace

Status add_domains(const fs::path& file, replay::Cluster& cluster) {
  const Result<std::string> text = read_file(file);
  if (!text) return text.error();
  const auto paths = paths_of(*text, file.filename().string());
  if (!paths) return paths.error();
  std::map<std::string, const model::HostPath*> by_host;
  for (const model::HostPath& path : *paths) by_host.emplace(path.host, &path);
  std::size_t named = 0;
  for (model::NodeSpec& node : cluster.nodes) {
    const auto found = by_host.find(node.name);
    if (found == by_host.end()) continue;
    node.domains = found->second->domains;
    ++named;
  }
  if (named == 0)
    return Error{Errc::kInvalid, "--domains " + file.string() +
                                     ": names none of the nodes; the first is '" +
                                     cluster.nodes[0].name + "'"};
  if (named < cluster.nodes.size())
    cluster.assumptions.push_back(std::to_string(cluster.nodes.size() - named) + " of " +
                                  std::to_string(cluster.nodes.size()) +
                                  " nodes are in no domain of " + file.filename().string() + ".");
  return {};
}

}  // namespace aliquot::cli
