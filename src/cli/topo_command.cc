#include "cli/topo_command.h"

#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <ostream>

#include "cli/machine_topology.h"
#include "cli/surroundings.h"
#include "cli/table.h"
#include "cli/topo_measure.h"
#include "common/files.h"
#include "format/json.h"
#include "inventory/driver_choice.h"
#include "inventory/nvml.h"
#include "inventory/topology_text.h"
#include "simdriver/presets.h"
#include "topology/reason.h"

namespace aliquot::cli {
namespace {

using format::Json;
using model::GpuSet;
using model::Link;
using model::NodeTopology;
using topology::Request;
using topology::Shape;

struct TopoOptions {
  std::string from;
  std::string sim;
  inventory::TopologyTextOptions generations;
  unsigned best = 0;
  std::string free = "all";
  std::string include;
  std::string exclude;
  Request wishes;
  bool json = false;
  bool measure = false;
};

// ---- where the graph comes from

Result<SourcedTopology> from_text(const TopoOptions& options) {
  std::string text;
  if (options.from == "-") {
    text.assign(std::istreambuf_iterator<char>(std::cin), {});
  } else {
    Result<std::string> read = read_file(options.from, 1u << 20);
    if (!read) return read.error();
    text = *std::move(read);
  }
  const std::string name = options.from == "-" ? "stdin" : options.from;
  Result<NodeTopology> node = inventory::parse_topology(text, name, options.generations);
  if (!node) return node.error();
  return SourcedTopology{name, false, *std::move(node)};
}

Result<SourcedTopology> from_preset(const std::string& name) {
  const auto simulator = simdriver::simulator_directory();
  if (!simulator) return simulator.error();
  const auto machine = simdriver::make_machine({name, {}, {}}, *simulator);
  if (!machine) return machine.error();
  return SourcedTopology{"simulated preset " + name, true, topology_of(*machine)};
}

Result<SourcedTopology> from_nvml(const std::filesystem::path& library, std::string title,
                                  bool simulated) {
  const auto nvml = inventory::open_nvml(library);
  if (!nvml) return nvml.error();
  Result<NodeTopology> node = inventory::topology_from(**nvml);
  if (!node) return node.error();
  return SourcedTopology{std::move(title), simulated, *std::move(node)};
}

Result<SourcedTopology> from_driver(const std::string& sim) {
  if (inside_lease()) {
    const auto share = share_driver();
    if (!share) return share.error();
    return from_nvml(share->libnvidia_ml, share->title(), share->simulated);
  }
  const auto driver = inventory::choose_driver(driver_question(sim));
  if (!driver && driver.error().code == Errc::kNotFound && !sim.empty()) return from_preset(sim);
  if (!driver) return driver.error();
  if (driver->simulated()) {
    const auto machine = simdriver::read_machine(driver->machine_directory / "machine.json");
    if (!machine) return machine.error();
    return SourcedTopology{driver->title(), true, topology_of(*machine)};
  }
  return from_nvml(driver->libnvidia_ml, driver->title(), false);
}

// ---- what is asked of it

Result<Request> request_of(const TopoOptions& options, const NodeTopology& node) {
  Request request = options.wishes;
  request.count = options.best;
  const auto read = [&](const std::string& text, GpuSet& set) -> Status {
    const Result<GpuSet> parsed = model::parse_gpu_set(text);
    if (!parsed) return parsed.error();
    set = *parsed;
    return {};
  };
  if (options.free == "all")
    request.free = GpuSet::first(static_cast<unsigned>(node.gpu_count()));
  else if (Status free = read(options.free, request.free); !free)
    return free.error();
  if (Status include = read(options.include, request.include); !include) return include.error();
  if (Status exclude = read(options.exclude, request.exclude); !exclude) return exclude.error();
  return request;
}

struct Answer {
  Shape shape;
  GpuSet set;
};

Result<Answer> answer_to(const NodeTopology& node, const Request& request) {
  Result<Shape> shape = Shape::of(node);
  if (!shape) return shape.error();
  const Result<GpuSet> set = best_set(*shape, request);
  if (!set) {
    const bool never = set.error().code == Errc::kInvalid;
    return Error{set.error().code, (never ? "never: " : "not now: ") + set.error().message};
  }
  return Answer{*std::move(shape), *set};
}

std::string comma_list(GpuSet set) {
  std::string text;
  for (const unsigned gpu : set) text += (text.empty() ? "" : ",") + std::to_string(gpu);
  return text;
}

// ---- how it is shown

std::string counted(std::size_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

// "NV2 50 GB/s" for every kind that occurs between GPUs, fastest first.
std::string link_legend(const NodeTopology& node) {
  std::map<std::pair<std::uint32_t, std::string>, bool> seen;
  for (std::size_t a = 0; a < node.gpu_count(); ++a)
    for (std::size_t b = 0; b < a; ++b) {
      const Link& link = node.link(a, b);
      if (link.kind == model::LinkKind::kWeight) return "GB/s one way, as given\n";
      seen[{link.bandwidth_mb_s, model::link_text(link)}] = true;
    }
  std::string text;
  for (auto kind = seen.rbegin(); kind != seen.rend(); ++kind)
    text += (text.empty() ? "" : ", ") + kind->first.second + " " +
            model::gb_s_text(kind->first.first) + " GB/s";
  return text.empty() ? "" : "one way, nominal: " + text + "\n";
}

Json device_json(const model::Device& device) {
  Json json = Json::object().set("name", device.name);
  if (!device.description.empty()) json.set("description", device.description);
  if (!device.cpus.empty()) json.set("cpus", device.cpus);
  if (device.numa) json.set("numa", *device.numa);
  return json;
}

Json answer_json(const NodeTopology& node, const Request& request, const Answer& answer) {
  Json gpus = Json::array();
  for (const unsigned gpu : answer.set) gpus.append(gpu);
  Json ring = Json::array();
  for (const unsigned gpu : answer.shape.best_ring(answer.set)) ring.append(gpu);
  return Json::object()
      .set("count", request.count)
      .set("gpus", std::move(gpus))
      .set("ring", std::move(ring))
      .set("ring_mb_s", answer.shape.ring_mb_s(answer.set))
      .set("pairs_mb_s", answer.shape.pairs_mb_s(answer.set))
      .set("reason", reason_for(node, answer.shape, request, answer.set));
}

Status show(const TopoOptions& options, Invocation& invocation) {
  Result<SourcedTopology> topology =
      options.from.empty() ? from_driver(options.sim) : from_text(options);
  if (!topology) return topology.error();
  std::optional<Request> request;
  if (options.best > 0) {
    Result<Request> made = request_of(options, topology->node);
    if (!made) return made.error();
    request = *made;
  }
  Result<std::string> text = std::string();
  if (options.measure)
    text = topo_measured(*topology, options.sim, options.json);
  else if (options.json)
    text = topo_json(*topology, request ? &*request : nullptr);
  else if (request)
    text = topo_answer(*topology, *request);
  else
    text = topo_table(*topology);
  if (!text) return text.error();
  invocation.out << *text;
  return {};
}

}  // namespace

std::string topo_table(const SourcedTopology& topology) {
  const NodeTopology& node = topology.node;
  std::vector<Table::Column> columns = {{""}};
  for (std::size_t i = 0; i < node.device_count(); ++i) columns.push_back({node.device(i).name});
  columns.push_back({"NUMA", Table::Align::kRight});
  columns.push_back({"CPUs"});
  Table table(std::move(columns));
  for (std::size_t a = 0; a < node.gpu_count(); ++a) {
    std::vector<std::string> cells = {node.device(a).name};
    for (std::size_t b = 0; b < node.device_count(); ++b)
      cells.push_back(a == b ? "-" : model::link_text(node.link(a, b)));
    const std::optional<int> numa = node.device(a).numa;
    cells.push_back(numa ? std::to_string(*numa) : "-");
    cells.push_back(node.device(a).cpus);
    table.add(std::move(cells));
  }
  std::string text = topology.source + ": " + counted(node.gpu_count(), "GPU");
  if (node.nic_count() > 0) text += ", " + counted(node.nic_count(), "NIC");
  text += "\n" + table.text() + link_legend(node);
  for (const model::Device& nic : node.nics())
    if (!nic.description.empty()) text += nic.name + ": " + nic.description + "\n";
  return text;
}

Result<std::string> topo_json(const SourcedTopology& topology, const Request* request) {
  const NodeTopology& node = topology.node;
  Json gpus = Json::array();
  for (const model::Device& gpu : node.gpus()) gpus.append(device_json(gpu));
  Json nics = Json::array();
  for (const model::Device& nic : node.nics()) nics.append(device_json(nic));
  Json links = Json::array();
  for (std::size_t a = 0; a < node.device_count(); ++a)
    for (std::size_t b = a + 1; b < node.device_count(); ++b)
      links.append(Json::object()
                       .set("a", node.device(a).name)
                       .set("b", node.device(b).name)
                       .set("kind", model::link_text(node.link(a, b)))
                       .set("mb_s", node.link(a, b).bandwidth_mb_s)
                       .set("latency_ns", node.link(a, b).latency_ns));
  Json json = Json::object()
                  .set("source", topology.source)
                  .set("simulated", topology.simulated)
                  .set("gpus", std::move(gpus))
                  .set("nics", std::move(nics))
                  .set("links", std::move(links));
  if (request != nullptr) {
    const Result<Answer> answer = answer_to(node, *request);
    if (!answer) return answer.error();
    json.set("best", answer_json(node, *request, *answer));
  }
  return json.dump(2) + "\n";
}

Result<std::string> topo_answer(const SourcedTopology& topology, const Request& request) {
  const Result<Answer> answer = answer_to(topology.node, request);
  if (!answer) return answer.error();
  return comma_list(answer->set) + "\n" + topology.source + ": " +
         reason_for(topology.node, answer->shape, request, answer->set) + "\n";
}

void add_topo_command(CLI::App& app, Invocation& invocation) {
  CLI::App* topo =
      app.add_subcommand("topo", "Show how GPUs are connected, and the best K of them");
  // Shared with the callback, which outlives this function.
  auto options = std::make_shared<TopoOptions>();
  auto* from = topo->add_option("--from", options->from,
                                "A saved `nvidia-smi topo -m` text or matrix of GB/s; - is stdin")
                   ->type_name("FILE");
  topo->add_option("--sim", options->sim, "Running simulated machine, or a preset")
      ->type_name("NAME|PRESET")
      ->excludes(from);
  topo->add_option("--nvlink-generation", options->generations.nvlink_generation,
                   "Of the saved text's machine, which the text does not tell")
      ->check(CLI::Range(1, 5))
      ->needs(from);
  topo->add_option("--pcie-generation", options->generations.pcie_generation,
                   "Of the saved text's machine")
      ->check(CLI::Range(1, 6))
      ->needs(from);
  auto* best = topo->add_option("--best", options->best, "Answer the best K GPUs, and why")
                   ->type_name("K")
                   ->check(CLI::Range(1, 32));
  const auto of_best = [&](CLI::Option* option) { option->needs(best); };
  of_best(topo->add_option("--free", options->free, "GPUs that are free (0-3,6)")
              ->capture_default_str()
              ->type_name("GPUS"));
  of_best(topo->add_option("--include", options->include, "GPUs that must be among them")
              ->type_name("GPUS"));
  of_best(topo->add_option("--exclude", options->exclude, "GPUs that must not be among them")
              ->type_name("GPUS"));
  of_best(topo->add_flag("--same-numa", options->wishes.one_numa_node,
                         "All of one NUMA node, or none"));
  of_best(topo->add_flag("--clique", options->wishes.one_clique,
                         "All pairs joined by NVLink, or none"));
  of_best(topo->add_flag("--near-nics", options->wishes.near_nics, "Prefer GPUs near NICs"));
  of_best(topo->add_flag("--near-numa", options->wishes.near_numa, "Prefer GPUs of one NUMA node"));
  topo->add_flag("--measure", options->measure,
                 "Copy between host and GPUs, and measure what the links carry")
      ->excludes(from)
      ->excludes(best);
  topo->add_flag("--json", options->json, "As JSON");
  topo->callback([options, &invocation] {
    if (const Status shown = show(*options, invocation); !shown)
      fail(invocation, "topo", shown.error());
  });
}

}  // namespace aliquot::cli
