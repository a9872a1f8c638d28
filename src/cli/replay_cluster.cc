#include "cli/replay_cluster.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "cli/machine_topology.h"
#include "common/files.h"
#include "replay/openb.h"
#include "replay/public_traces.h"
#include "simdriver/presets.h"

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

}  // namespace aliquot::cli
