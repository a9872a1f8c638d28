#include "topology/collective.h"

#include <algorithm>
#include <cassert>
#include <map>

namespace aliquot::topology {
namespace {

using model::Link;
using model::LinkKind;
using model::NodeTopology;

bool is_path(LinkKind kind) { return kind >= LinkKind::kPix && kind <= LinkKind::kSys; }

// The devices that lie within `limit` of each other, directly or through others; the group of each
// device is named by its lowest member.
std::vector<std::size_t> groups_within(const NodeTopology& node, LinkKind limit) {
  std::vector<std::size_t> group(node.device_count());
  for (std::size_t i = 0; i < group.size(); ++i) group[i] = i;
  for (std::size_t a = 0; a < group.size(); ++a)
    for (std::size_t b = 0; b < a; ++b) {
      const LinkKind kind = node.link(a, b).kind;
      // NVLinks hide the path; the NUMA nodes still tell that.
      const bool near =
          (is_path(kind) && kind <= limit) || (limit == LinkKind::kNode && node.same_numa(a, b));
      if (!near || group[a] == group[b]) continue;
      const auto [keep, drop] = std::minmax(group[a], group[b]);
      std::replace(group.begin(), group.end(), std::size_t{drop}, std::size_t{keep});
    }
  return group;
}

std::string members(const NodeTopology& node, const std::vector<std::size_t>& group,
                    std::size_t name) {
  std::string text;
  for (std::size_t i = 0; i < group.size(); ++i)
    if (group[i] == name) text += (text.empty() ? "" : ",") + node.device(i).name;
  return text;
}

unsigned pcie_generation(const NodeTopology& node) {
  unsigned generation = 0;
  for (std::size_t a = 0; a < node.device_count(); ++a)
    for (std::size_t b = 0; b < a; ++b)
      if (is_path(node.link(a, b).kind))
        generation = std::max<unsigned>(generation, node.link(a, b).generation);
  return generation;
}

Traffic traffic_of(const std::vector<unsigned>& times, double most_mb_s) {
  Traffic traffic;
  traffic.most_mb_s = most_mb_s;
  for (std::size_t wire = 0; wire < times.size(); ++wire)
    if (times[wire] > 0) traffic.uses.push_back({wire, times[wire]});
  return traffic;
}

}  // namespace

double ring_all_reduce_seconds(unsigned gpus, double bytes, double mb_s, double latency_ns) {
  if (gpus < 2) return 0;
  const double steps = 2.0 * (gpus - 1);
  return steps / gpus * bytes / (mb_s * 1e6) + steps * latency_ns * 1e-9;
}

Fabric::Fabric(const NodeTopology& node) : node_(node) {
  add_pcie();
  add_nvlinks();
}

std::size_t Fabric::add_wires(const std::string& there, const std::string& back, double mb_s) {
  wires_.push_back({there, mb_s});
  wires_.push_back({back, mb_s});
  return wires_.size() - 2;
}

void Fabric::add_pcie() {
  const unsigned generation = pcie_generation(node_);
  const double port = model::path_link(LinkKind::kPix, generation).bandwidth_mb_s;
  const double socket = model::path_link(LinkKind::kSys, generation).bandwidth_mb_s;
  const std::size_t devices = node_.device_count();
  std::vector<std::size_t> top(devices);  // the highest port of each device so far
  for (std::size_t i = 0; i < devices; ++i) {
    const std::string& name = node_.device(i).name;
    ports_.push_back({add_wires(name + " up", name + " down", port)});
    top[i] = i;
  }
  struct Level {
    LinkKind limit;
    const char* name;
    double mb_s;
  };
  // No wires for PHB: a host bridge has many root ports and is not the narrow place.
  for (const auto& [limit, title, mb_s] :
       {Level{LinkKind::kPix, "switch of ", port}, Level{LinkKind::kPxb, "root port of ", port},
        Level{LinkKind::kNode, "socket of ", socket}}) {
    const std::vector<std::size_t> group = groups_within(node_, limit);
    // A switch joins ports; a socket's link matters when there is another socket.
    const auto needs_port = [&, reach = limit](std::size_t i) {
      for (std::size_t j = 0; j < devices; ++j)
        if (reach == LinkKind::kNode ? group[j] != group[i]
                                     : group[j] == group[i] && top[j] != top[i])
          return true;
      return false;
    };
    std::map<std::size_t, std::size_t> made;  // group -> port
    std::vector<std::size_t> next = top;
    for (std::size_t i = 0; i < devices; ++i) {
      if (!needs_port(i)) continue;
      if (!made.contains(group[i])) {
        const std::string name = title + members(node_, group, group[i]);
        ports_.push_back(
            {add_wires(name + " up", name + " down", mb_s), kNone, limit == LinkKind::kNode});
        made[group[i]] = ports_.size() - 1;
      }
      next[i] = made[group[i]];
      ports_[top[i]].parent = next[i];
    }
    top = std::move(next);
  }
}

void Fabric::add_nvlinks() {
  const std::size_t gpus = node_.gpu_count();
  nvswitch_wire_.assign(gpus, kNone);
  direct_wire_.assign(gpus * gpus, kNone);
  for (std::size_t a = 0; a < gpus; ++a)
    for (std::size_t b = 0; b < gpus; ++b) {
      const Link& link = node_.link(a, b);
      const std::string& name = node_.device(a).name;
      if (a == b || is_path(link.kind)) continue;
      if (link.kind == LinkKind::kNvswitch) {
        if (nvswitch_wire_[a] == kNone)
          nvswitch_wire_[a] =
              add_wires(name + " to NVSwitch", name + " from NVSwitch", link.bandwidth_mb_s);
      } else if (a < b) {
        const std::string& other = node_.device(b).name;
        const std::string to = " to ";
        const std::size_t wire =
            add_wires(std::string(name).append(to).append(other),
                      std::string(other).append(to).append(name), link.bandwidth_mb_s);
        direct_wire_[a * gpus + b] = wire;
        direct_wire_[b * gpus + a] = wire + 1;
      }
    }
}

std::vector<std::size_t> Fabric::ports_above(std::size_t device) const {
  std::vector<std::size_t> ports;
  for (std::size_t port = device; port != kNone; port = ports_[port].parent) ports.push_back(port);
  return ports;
}

double Fabric::add_hop(std::size_t from, std::size_t to, std::vector<unsigned>& times) const {
  assert(from != to);
  const Link& link = node_.link(from, to);
  if (link.kind == LinkKind::kNvswitch) {
    ++times[nvswitch_wire_[from]];
    ++times[nvswitch_wire_[to] + 1];
  } else if (!is_path(link.kind)) {
    ++times[direct_wire_[from * node_.gpu_count() + to]];
  } else {
    std::vector<std::size_t> up = ports_above(from);
    std::vector<std::size_t> down = ports_above(to);
    while (!up.empty() && !down.empty() && up.back() == down.back()) {
      up.pop_back();
      down.pop_back();
    }
    for (const std::size_t port : up) ++times[ports_[port].wire];
    for (const std::size_t port : down) ++times[ports_[port].wire + 1];
  }
  return link.bandwidth_mb_s;
}

Traffic Fabric::flow(std::size_t from, std::size_t to) const {
  std::vector<unsigned> times(wires_.size(), 0);
  const double most = add_hop(from, to, times);
  return traffic_of(times, most);
}

Traffic Fabric::to_memory(std::size_t device) const {
  Traffic traffic;
  for (const std::size_t port : ports_above(device))
    if (!ports_[port].between_sockets) traffic.uses.push_back({ports_[port].wire, 1});
  return traffic;
}

Traffic Fabric::from_memory(std::size_t device) const {
  Traffic traffic = to_memory(device);
  for (Traffic::Use& use : traffic.uses) ++use.wire;
  return traffic;
}

Traffic Fabric::ring(const std::vector<unsigned>& gpus) const {
  std::vector<unsigned> times(wires_.size(), 0);
  double most = Traffic{}.most_mb_s;
  // Of two GPUs the ring is their link in both directions.
  for (std::size_t i = 0; gpus.size() > 1 && i < gpus.size(); ++i)
    most = std::min(most, add_hop(gpus[i], gpus[(i + 1) % gpus.size()], times));
  return traffic_of(times, most);
}

NodeTopology with_device(const NodeTopology& node, const std::string& name, std::size_t beside,
                         LinkKind path) {
  std::vector<model::Device> nics = node.nics();
  nics.push_back({name, {}, node.device(beside).cpus, node.device(beside).numa});
  NodeTopology wider(node.gpus(), std::move(nics));
  const unsigned generation = pcie_generation(node);
  const std::size_t added = node.device_count();
  for (std::size_t a = 0; a < added; ++a) {
    for (std::size_t b = 0; b < a; ++b) wider.set_link(a, b, node.link(a, b));
    LinkKind kind = a == beside ? path : node.link(beside, a).kind;
    if (!is_path(kind)) kind = node.same_numa(beside, a) ? LinkKind::kNode : LinkKind::kSys;
    wider.set_link(a, added, model::path_link(std::max(kind, path), generation));
  }
  return wider;
}

std::vector<double> fair_rates(const std::vector<Wire>& wires,
                               const std::vector<Traffic>& traffic) {
  std::vector<double> rates(traffic.size(), 0);
  std::vector<double> left(wires.size());
  for (std::size_t i = 0; i < wires.size(); ++i) left[i] = wires[i].capacity_mb_s;
  std::vector<bool> growing(traffic.size(), true);
  constexpr double kFull = 1e-6;  // MB/s: what rounding leaves of a full wire
  while (std::find(growing.begin(), growing.end(), true) != growing.end()) {
    // All grow by the same step, as far as the first full wire or the first bound lets them.
    std::vector<unsigned> load(wires.size(), 0);
    double step = 1e12;
    for (std::size_t i = 0; i < traffic.size(); ++i) {
      if (!growing[i]) continue;
      for (const auto& [wire, times] : traffic[i].uses) load[wire] += times;
      step = std::min(step, traffic[i].most_mb_s - rates[i]);
    }
    for (std::size_t wire = 0; wire < wires.size(); ++wire)
      if (load[wire] > 0) step = std::min(step, left[wire] / load[wire]);
    for (std::size_t wire = 0; wire < wires.size(); ++wire) left[wire] -= step * load[wire];
    for (std::size_t i = 0; i < traffic.size(); ++i) {
      if (!growing[i]) continue;
      rates[i] += step;
      const auto full = [&](const Traffic::Use& use) { return left[use.wire] <= kFull; };
      if (rates[i] + kFull >= traffic[i].most_mb_s ||
          std::any_of(traffic[i].uses.begin(), traffic[i].uses.end(), full))
        growing[i] = false;
    }
  }
  return rates;
}

double all_reduce_seconds(const Fabric& fabric, const std::vector<unsigned>& ring, double bytes,
                          const std::vector<Traffic>& others) {
  std::vector<Traffic> all = {fabric.ring(ring)};
  all.insert(all.end(), others.begin(), others.end());
  return ring_all_reduce_seconds(static_cast<unsigned>(ring.size()), bytes,
                                 fair_rates(fabric.wires(), all)[0]);
}

}  // namespace aliquot::topology
