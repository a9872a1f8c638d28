// Placements a second, one core, decisions only: no API, no network. Prints one line of JSON.
//
//   scheduler_bench [--traces FOLDER]      the openb lines need the traces; the others are built
//   here
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <deque>
#include <exception>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "replay/inflation.h"
#include "scheduler/policies.h"
#include "scheduler/scheduler.h"
#include "support/shared_data.h"

namespace {

using aliquot::scheduler::Outcome;
using aliquot::scheduler::Scheduler;
namespace model = aliquot::model;
namespace replay = aliquot::replay;
namespace scheduler = aliquot::scheduler;

struct Figures {
  double per_second = 0;
  double p99_us = 0;
  double worst_us = 0;
  std::size_t states = 0;
};

// CPU time of this thread: other programs on the machine do not count.
double cpu_us() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

// Places each request; where `keep` is not 0, more than that many running end, oldest first. With
// `each` every decision is timed, which costs about as much as a fast one.
using Running = std::deque<scheduler::ReservationId>;

Figures drive(Scheduler& s, const std::vector<model::Request>& requests, Running& running,
              std::size_t keep, bool each) {
  std::vector<double> took;
  const double start = cpu_us();
  for (const model::Request& request : requests) {
    const double before = each ? cpu_us() : 0;
    const auto decision = s.place(request);
    if (each) took.push_back(cpu_us() - before);
    if (decision && decision->outcome == Outcome::kPlaced) running.push_back(decision->reservation);
    while (keep > 0 && running.size() > keep) {
      (void)s.snapshot().release(running.front());
      running.pop_front();
    }
  }
  Figures f;
  f.per_second = static_cast<double>(requests.size()) / (cpu_us() - start) * 1e6;
  f.states = s.snapshot().index().active_count();
  if (!each) return f;
  std::sort(took.begin(), took.end());
  f.p99_us = took[took.size() * 99 / 100];
  f.worst_us = took.back();
  return f;
}

void print(const std::string& name, const Figures& f) {
  std::printf(
      ", \"%s_per_s\": %.0f, \"%s_p99_us\": %.1f, \"%s_worst_us\": %.0f, \"%s_states\": %zu",
      name.c_str(), f.per_second, name.c_str(), f.p99_us, name.c_str(), f.worst_us, name.c_str(),
      f.states);
}

bool openb(const std::string& folder) {
  const auto nodes = replay::read_openb_nodes(folder + "/openb_node_list_gpu_node.csv");
  const auto pods = replay::read_openb_pods(folder + "/openb_pod_list_default.csv");
  if (!nodes || !pods) return false;
  std::vector<scheduler::WorkShape> seen;
  for (const replay::OpenbPod& pod : *pods) seen.push_back(replay::work_shape_of(pod));
  std::vector<model::Request> requests;
  for (const replay::OpenbPod* pod : replay::inflate(*pods, 6'212'000, {"", 42}))
    requests.push_back(replay::request_of(*pod));
  for (const std::string name : {"fgd", "rollout", "bestfit"}) {
    Figures best;
    for (const bool each : {false, false, true}) {  // the memo is empty at the start of each
      scheduler::PolicyInput input{
          scheduler::workload_of(seen), 1, scheduler::capacity_of(*nodes), {}};
      Scheduler s(*nodes, std::move(*scheduler::make_policy(name, input)));
      Running running;
      const Figures f = drive(s, requests, running, 0, each);
      best.per_second = std::max(best.per_second, f.per_second);
      if (each) best = {best.per_second, f.p99_us, f.worst_us, f.states};
    }
    print("openb_" + name, best);
  }
  return true;
}

// NVLinks between the GPUs of a DGX-1 with V100; other pairs go through the CPUs.
model::NodeTopology dgx1_volta() {
  constexpr unsigned kLinks[8][8] = {{0, 1, 1, 2, 2, 0, 0, 0}, {1, 0, 2, 1, 0, 2, 0, 0},
                                     {1, 2, 0, 2, 0, 0, 1, 0}, {2, 1, 2, 0, 0, 0, 0, 1},
                                     {2, 0, 0, 0, 0, 1, 1, 2}, {0, 2, 0, 0, 1, 0, 2, 1},
                                     {0, 0, 1, 0, 1, 2, 0, 2}, {0, 0, 0, 1, 2, 1, 2, 0}};
  std::vector<model::Device> gpus(8);
  for (std::size_t i = 0; i < 8; ++i) {
    gpus[i].name = "GPU" + std::to_string(i);
    gpus[i].numa = i < 4 ? 0 : 1;
  }
  model::NodeTopology node(std::move(gpus), {});
  for (std::size_t a = 0; a < 8; ++a)
    for (std::size_t b = a + 1; b < 8; ++b)
      node.set_link(a, b,
                    kLinks[a][b] > 0 ? model::nvlink(kLinks[a][b], 2)
                                     : model::path_link(model::LinkKind::kSys, 3));
  return node;
}

std::vector<model::NodeSpec> boxes(std::size_t count) {
  std::vector<model::NodeSpec> nodes(count);
  for (std::size_t i = 0; i < count; ++i) {
    model::NodeSpec& node = nodes[i];
    node.name = "n" + std::to_string(i);
    node.cpu_milli = 128'000;
    node.memory_bytes = model::Bytes{1} << 40;
    node.gpu_count = 8;
    node.gpu = {"V100M32", 70, model::Bytes{32} << 30, 125};
    node.topology = "dgx-1v";
    node.domains = {"core", "spine-" + std::to_string(i / 512), "leaf-" + std::to_string(i / 32)};
  }
  return nodes;
}

// Jobs of 1, 2, 4 and 8 whole GPUs and shares, that keep about 85 % of the GPUs in use.
std::vector<model::Request> mixed(std::size_t count) {
  std::mt19937_64 engine(1);
  std::vector<model::Request> requests(count);
  for (model::Request& request : requests) {
    const auto draw = engine() % 10;
    model::GpuAsk ask{
        model::GpuKind::kWhole, draw < 3 ? 1 : draw < 5 ? 2 : draw < 6 ? 4 : 8, 0, 0, 0, {}};
    if (draw >= 7)
      ask = {model::GpuKind::kShare, 1, 250 * static_cast<int>(1 + engine() % 2),
             model::Bytes{8} << 30,  0, {}};
    request.containers = {
        {"main", 4'000 * static_cast<std::int64_t>(1 + engine() % 2), model::Bytes{16} << 30, ask}};
  }
  return requests;
}

double resident_mib() {
  std::ifstream status("/proc/self/statm");
  long pages = 0;
  long resident = 0;
  status >> pages >> resident;
  return static_cast<double>(resident) * 4096 / (1 << 20);
}

void scale(std::size_t nodes, const char* policy, const std::string& name) {
  scheduler::PolicyInput input;
  input.topologies.emplace("dgx-1v", dgx1_volta());
  Scheduler s(boxes(nodes), std::move(*scheduler::make_policy(policy, input)));
  // 2.05 GPUs each on average: first fill, then measure in balance.
  const std::size_t keep = nodes * 8 * 85 / 205;
  Running running;
  (void)drive(s, mixed(keep), running, 0, false);
  Figures f = drive(s, mixed(60'000), running, keep, true);
  f.per_second = drive(s, mixed(60'000), running, keep, false).per_second;
  print(name, f);
}

int measured(int argc, char** argv) {
  std::string traces;
  CLI::App app("Placements a second");
  app.add_option("--traces", traces, "folder of the openb CSVs");
  CLI11_PARSE(app, argc, argv);
  if (traces.empty())
    if (const auto found = aliquot::test::shared_data()) traces = *found / "traces/openb";
  std::printf("{\"bench\": \"scheduler\", \"simulated\": true, \"unit\": \"placements/s\"");
  if (!traces.empty() && !openb(traces))
    return std::fprintf(stderr, "cannot read %s\n", traces.c_str()), 1;
  for (const std::size_t nodes : {1'000, 5'000, 15'000, 50'000})
    scale(nodes, "topology", "topology_" + std::to_string(nodes));
  scale(100'000, "binpack", "binpack_100000");
  std::printf(", \"resident_100000_mib\": %.0f}\n", resident_mib());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return measured(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
