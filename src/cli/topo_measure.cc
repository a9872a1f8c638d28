#include "cli/topo_measure.h"

#include <cmath>

#include "cli/surroundings.h"
#include "cli/table.h"
#include "format/json.h"
#include "inventory/driver_choice.h"
#include "model/topology.h"

namespace aliquot::cli {
namespace {

using format::Json;

// A link that carries less than this of its ceiling deserves a look.
constexpr double kWell = 0.7;

std::string one_decimal(double value) {
  const auto tenths = static_cast<long long>(std::llround(value * 10));
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10);
}

std::string gb_s(double mb_s) { return one_decimal(mb_s / 1000); }

double host_ceiling(const std::vector<inventory::NvmlGpu>& gpus, unsigned gpu) {
  return gpu < gpus.size()
             ? pcie_ceiling_mb_s(gpus[gpu].pcie_max_generation, gpus[gpu].pcie_max_width)
             : 0;
}

const model::Link* link_of(const SourcedTopology& topology, const MeasuredPeer& peer) {
  if (peer.from >= topology.node.gpu_count() || peer.to >= topology.node.gpu_count())
    return nullptr;
  return &topology.node.link(peer.from, peer.to);
}

std::string slow_line(const std::string& what, double measured, double ceiling) {
  if (ceiling <= 0 || measured >= kWell * ceiling) return "";
  return what + " carries " + gb_s(measured) + " of " + gb_s(ceiling) + " GB/s\n";
}

std::string host_table(const std::vector<inventory::NvmlGpu>& gpus, const LinkMeasure& measure) {
  using Align = Table::Align;
  Table table({{"GPU"},
               {"to GPU GB/s", Align::kRight},
               {"from GPU GB/s", Align::kRight},
               {"ceiling GB/s", Align::kRight},
               {"latency us", Align::kRight},
               {"link"}});
  for (const MeasuredHost& host : measure.hosts) {
    const double ceiling = host_ceiling(gpus, host.gpu);
    std::string link = "-";
    if (ceiling > 0)
      link = "PCIe " + std::to_string(gpus[host.gpu].pcie_max_generation) + ".0 x" +
             std::to_string(gpus[host.gpu].pcie_max_width);
    table.add({std::to_string(host.gpu), gb_s(host.to_device.mb_s), gb_s(host.from_device.mb_s),
               ceiling > 0 ? gb_s(ceiling) : "-", one_decimal(host.to_device.latency_us), link});
  }
  return table.text();
}

// GB/s from the row's GPU to the column's.
std::string peer_table(const LinkMeasure& measure, std::size_t count) {
  std::vector<Table::Column> columns = {{"from \\ to"}};
  for (std::size_t i = 0; i < count; ++i)
    columns.push_back({"GPU" + std::to_string(i), Table::Align::kRight});
  Table table(std::move(columns));
  for (std::size_t from = 0; from < count; ++from) {
    std::vector<std::string> cells(count + 1, "-");
    cells[0] = "GPU" + std::to_string(from);
    for (const MeasuredPeer& peer : measure.peers)
      if (peer.from == from && peer.to < count)
        cells[peer.to + 1] = gb_s(peer.way.mb_s) + (peer.direct ? "" : "*");
    table.add(std::move(cells));
  }
  return table.text();
}

Json way_json(const MeasuredWay& way) {
  return Json::object()
      .set("mb_s", std::int64_t{std::llround(way.mb_s)})
      .set("latency_ns", std::int64_t{std::llround(way.latency_us * 1000)});
}

}  // namespace

std::string measure_text(const SourcedTopology& topology,
                         const std::vector<inventory::NvmlGpu>& gpus, const LinkMeasure& measure) {
  std::string text = topology.source + ": measured by copies of 64 MiB" +
                     (topology.simulated ? " (simulated)" : "") + "\n" + host_table(gpus, measure);
  std::string slow;
  for (const MeasuredHost& host : measure.hosts) {
    const std::string gpu = "GPU " + std::to_string(host.gpu);
    slow += slow_line("host to " + gpu, host.to_device.mb_s, host_ceiling(gpus, host.gpu));
    slow += slow_line(gpu + " to host", host.from_device.mb_s, host_ceiling(gpus, host.gpu));
  }
  if (measure.peers.empty()) return text + slow;
  text += "\n" + peer_table(measure, measure.hosts.size());
  bool through_host = false;
  for (const MeasuredPeer& peer : measure.peers) {
    through_host |= !peer.direct;
    if (const model::Link* link = link_of(topology, peer))
      slow += slow_line("GPU " + std::to_string(peer.from) + " to GPU " + std::to_string(peer.to) +
                            " (" + model::link_text(*link) + ")",
                        peer.way.mb_s, link->bandwidth_mb_s);
  }
  if (through_host) text += "* no peer access: through the host's memory\n";
  return text + slow;
}

std::string measure_json(const SourcedTopology& topology,
                         const std::vector<inventory::NvmlGpu>& gpus, const LinkMeasure& measure) {
  Json hosts = Json::array();
  for (const MeasuredHost& host : measure.hosts)
    hosts.append(
        Json::object()
            .set("gpu", host.gpu)
            .set("to_device", way_json(host.to_device))
            .set("from_device", way_json(host.from_device))
            .set("ceiling_mb_s", std::int64_t{std::llround(host_ceiling(gpus, host.gpu))}));
  Json peers = Json::array();
  for (const MeasuredPeer& peer : measure.peers) {
    Json json = Json::object().set("from", peer.from).set("to", peer.to).set("direct", peer.direct);
    json.set("measured", way_json(peer.way));
    if (const model::Link* link = link_of(topology, peer))
      json.set("kind", model::link_text(*link)).set("ceiling_mb_s", link->bandwidth_mb_s);
    peers.append(std::move(json));
  }
  return Json::object()
             .set("source", topology.source)
             .set("simulated", topology.simulated)
             .set("hosts", std::move(hosts))
             .set("peers", std::move(peers))
             .dump(2) +
         "\n";
}

Result<std::string> topo_measured(const SourcedTopology& topology, const std::string& sim,
                                  bool json) {
  std::filesystem::path libcuda, libnvidia_ml;
  if (inside_lease()) {
    const auto cuda = share_library("libcuda.so.1");
    if (!cuda) return cuda.error();
    const auto nvml = share_library("libnvidia-ml.so.1");
    if (!nvml) return nvml.error();
    libcuda = *cuda;
    libnvidia_ml = *nvml;
  } else {
    const auto driver = inventory::choose_driver(driver_question(sim));
    if (!driver) return driver.error();
    libcuda = driver->libcuda;
    libnvidia_ml = driver->libnvidia_ml;
  }
  const auto nvml = inventory::open_nvml(libnvidia_ml);
  if (!nvml) return nvml.error();
  const auto gpus = (*nvml)->gpus();
  if (!gpus) return gpus.error();
  const auto measure = measure_links(libcuda.string());
  if (!measure) return measure.error();
  return json ? measure_json(topology, *gpus, *measure) : measure_text(topology, *gpus, *measure);
}

}  // namespace aliquot::cli
