// Times of the search for the best GPUs of a node, one core. Prints one JSON object; "worst" is the
// slowest single case, with its seed where it was a random one.
//
// Cold: from the link graph to the answer, nothing known of the shape. Known machines: the ones of
// tests/support/topologies.h and, where the collected texts are at hand, those.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "common/files.h"
#include "format/json.h"
#include "inventory/topology_text.h"
#include "support/shared_data.h"
#include "support/topologies.h"
#include "support/topology_oracle_runs.h"
#include "topology/best_table.h"
#include "topology/reason.h"

namespace {

using namespace aliquot;
using topology::BestTable;
using topology::GpuSet;
using topology::Request;
using topology::Shape;

// The least of three tries: what other programs take of the core is not the search's.
template <typename Work>
double microseconds(Work&& work) {
  double least = 1e18;
  for (int i = 0; i < 3; ++i) {
    const auto start = std::chrono::steady_clock::now();
    work();
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
    least = std::min(least, took.count());
  }
  return least;
}

struct Worst {
  double microseconds = 0;
  std::string where;
  void take(double us, const std::string& what) {
    if (us <= microseconds) return;
    microseconds = us;
    where = what;
  }
  format::Json json() const {
    return format::Json::object().set("microseconds", microseconds).set("where", where);
  }
};

struct Known {
  std::string name;
  model::NodeTopology node;
};

std::vector<Known> known_machines() {
  std::vector<Known> known = {{"dgx1-v100", test::dgx1_v100()}, {"dgx1-p100", test::dgx1_p100()},
                              {"hgx", test::hgx(18)},           {"one-bridge", test::one_bridge()},
                              {"pcie-tree", test::pcie_tree()}, {"four-ring", test::four_ring()}};
  const auto data = test::shared_data();
  if (!data) return known;
  for (const auto& file : std::filesystem::directory_iterator(*data / "topo")) {
    if (file.path().extension() != ".txt") continue;
    const auto text = read_file(file.path());
    if (!text) continue;
    auto node = inventory::parse_topology(*text, file.path().filename().string());
    if (node) known.push_back({file.path().filename().string(), *std::move(node)});
  }
  return known;
}

// Every count with each constraint, and without, from all free GPUs and from random ones.
std::vector<Request> requests_for(std::mt19937_64& random, unsigned gpus) {
  std::vector<Request> requests;
  for (unsigned count = 1; count <= gpus; ++count) {
    Request plain{.count = count, .free = GpuSet::first(gpus)};
    requests.push_back(plain);
    requests.push_back(plain);
    requests.back().one_clique = true;
    requests.push_back(plain);
    requests.back().one_numa_node = true;
    requests.push_back(plain);
    requests.back().near_nics = requests.back().near_numa = true;
    requests.back().include.insert(gpus - 1);
    requests.push_back(topology::oracle::random_request(random, gpus));
  }
  return requests;
}

format::Json known_figures() {
  std::mt19937_64 random(1);
  Worst cold;
  Worst constrained;
  Worst reason;
  const std::vector<Known> known = known_machines();
  for (const auto& [name, node] : known) {
    const Shape shape = *Shape::of(node);
    for (const Request& request : requests_for(random, shape.size())) {
      const std::string where = name + ", " + std::to_string(request.count);
      cold.take(microseconds([&] { (void)best_set(*Shape::of(node), request); }), where);
      Result<GpuSet> best = GpuSet{};
      constrained.take(microseconds([&] { best = best_set(shape, request); }), where);
      if (best)
        reason.take(microseconds([&] { (void)reason_for(node, shape, request, *best); }), where);
    }
  }
  return format::Json::object()
      .set("machines", static_cast<std::uint64_t>(known.size()))
      .set("cold_worst", cold.json())
      .set("constrained_worst", constrained.json())
      .set("reason_worst", reason.json());
}

format::Json random_figures(unsigned graphs) {
  Worst table;
  Worst cold;
  Worst constrained;
  for (unsigned seed = 0; seed < graphs; ++seed) {
    std::mt19937_64 random(seed);
    const auto node = test::random_topology(random, 16, 1 + seed % 40);
    const std::string name = "16 GPUs, seed " + std::to_string(seed);
    if (seed < 10) table.take(microseconds([&] { const BestTable made(*Shape::of(node)); }), name);
    const Shape shape = *Shape::of(node);
    for (const Request& request : requests_for(random, 16)) {
      const std::string where = name + ", " + std::to_string(request.count);
      constrained.take(microseconds([&] { (void)best_set(shape, request); }), where);
    }
    const Request half{.count = 8, .free = GpuSet::first(16), .near_numa = true};
    cold.take(microseconds([&] { (void)best_set(*Shape::of(node), half); }), name);
  }
  return format::Json::object()
      .set("table_built_worst", table.json())
      .set("cold_worst", cold.json())
      .set("constrained_worst", constrained.json());
}

// Mean of a million look-ups in the table of 16 GPUs.
double lookup_nanoseconds() {
  std::mt19937_64 random(5);
  const BestTable table(*Shape::of(test::random_topology(random, 16, 8)));
  std::vector<std::pair<GpuSet, unsigned>> questions(1 << 16);
  for (auto& [free, count] : questions) {
    free = GpuSet::from_bits(static_cast<std::uint32_t>(random() & 0xffff));
    count = static_cast<unsigned>(random() % 17);
  }
  std::uint64_t sum = 0;
  constexpr unsigned kRounds = 16;
  const double us = microseconds([&] {
    for (unsigned i = 0; i < kRounds; ++i)
      for (const auto& [free, count] : questions) sum += table.best(free, count).bits();
  });
  if (sum == 0) std::fputs("no answers\n", stderr);
  return 1000 * us / (kRounds * static_cast<double>(questions.size()));
}

}  // namespace

int main() {
  const auto figures = format::Json::object()
                           .set("bench", "topology")
                           .set("lookup_ns", lookup_nanoseconds())
                           .set("known", known_figures())
                           .set("random_16", random_figures(40));
  std::puts(figures.dump(2).c_str());
  return 0;
}
