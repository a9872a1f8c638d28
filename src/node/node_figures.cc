#include "node/node_figures.h"

#include <algorithm>

#include "node/seconds.h"

namespace aliquot::node {
namespace {

constexpr Nanoseconds kStale = 15 * kSecond;
constexpr double kWhole = 10'000;  // 1/100 %

std::optional<double> number(const std::optional<unsigned>& value, double scale = 1) {
  return value ? std::optional(*value * scale) : std::nullopt;
}

void add_reading(const LatestReading& latest, Nanoseconds now, GpuFigures& gpu) {
  if (latest.read_at == 0 || !latest.reading) return;
  gpu.age_s = seconds_of(now - latest.read_at);
  if (now - latest.read_at > kStale) return;
  const inventory::NvmlState& state = latest.reading->state;
  gpu.memory_total_bytes = state.memory.total_bytes - state.memory.reserved_bytes;
  gpu.memory_used_bytes = state.memory.used_bytes;
  gpu.utilization = number(state.gpu_percent, 0.01);
  gpu.memory_utilization = number(state.memory_percent, 0.01);
  gpu.temperature_c = number(state.temperature_c);
  gpu.power_w = number(state.power_mw, 0.001);
  if (state.energy_mj) gpu.energy_j = static_cast<double>(*state.energy_mj) * 0.001;
  gpu.sm_mhz = number(state.sm_mhz);
  gpu.memory_mhz = number(state.memory_mhz);
  const auto& links = latest.reading->health.nvlinks_up;
  if (links.empty()) return;
  gpu.nvlinks = static_cast<unsigned>(links.size());
  gpu.nvlinks_up = static_cast<unsigned>(std::ranges::count(links, true));
}

GpuFigures gpu_figures(const FiguresSources& sources, std::size_t index) {
  const KnownGpu& known = sources.gpus[index];
  GpuFigures gpu;
  gpu.index = static_cast<unsigned>(index);
  gpu.uuid = known.uuid;
  gpu.model = known.name;
  for (const LatestReading& latest : sources.readings)
    if (latest.uuid == known.uuid) add_reading(latest, sources.now, gpu);
  for (const NodeHealth::State& health : sources.health) {
    if (health.uuid != known.uuid) continue;
    gpu.health = health.state;
    for (const auto& [xid, count] : health.xids) {
      const double ago_s = seconds_of(sources.now - count.last);
      gpu.xids[xid] = {count.count, sources.now_unix_s - ago_s};
    }
  }
  for (const broker::LeaseRow& lease : sources.leases)
    for (const broker::UsageRow& share : lease.gpus) {
      if (share.uuid != known.uuid) continue;
      ++gpu.leases;
      gpu.memory_granted_bytes += share.limit_bytes;
      gpu.cores_granted += share.cores / kWhole;
    }
  return gpu;
}

ShareFigures share_figures(const broker::LeaseRow& lease, const broker::UsageRow& usage,
                           const FiguresSources& sources) {
  const std::vector<BoundContainer>& containers = sources.containers;
  ShareFigures share;
  share.container = lease.name;
  const auto bound = std::ranges::find(containers, lease.name, &BoundContainer::lease);
  if (bound != containers.end()) {
    share.name_space = bound->pod_namespace;
    share.pod = bound->pod;
    share.container = bound->container;
  }
  share.gpu = usage.index;
  if (lease.observed && &usage == lease.gpus.data()) share.observed_refusals = lease.would_refuse;
  share.uuid = usage.uuid;
  share.memory_limit_bytes = usage.limit_bytes;
  share.memory_used_bytes = usage.used_bytes;
  share.cores = usage.cores / kWhole;
  share.utilization = usage.compute.busy / kWhole;
  const auto used_up = sources.usage.find({lease.name, lease.id, usage.uuid});
  if (used_up != sources.usage.end()) {
    share.busy_s = used_up->second.busy_s;
    share.granted_byte_s = used_up->second.granted_byte_s;
    share.unused_byte_s = used_up->second.unused_byte_s;
    share.energy_j = used_up->second.energy_j;
  }
  share.throttled_s = seconds_of(usage.waiting_ns);
  share.refusals = usage.refusals;
  share.launches = usage.launches;
  share.processes = lease.processes;
  share.bypasses = usage.compute.bypasses;
  return share;
}

}  // namespace

NodeFigures figures_of(const FiguresSources& sources) {
  NodeFigures figures;
  figures.node = sources.node;
  figures.driver = sources.driver_version;
  figures.simulated = sources.simulated;
  figures.registered = sources.registered;
  figures.slot_mismatches = sources.counters.slot_mismatches;
  figures.leaked_leases = sources.counters.leaked_leases;
  figures.lists_put_off = sources.counters.lists_put_off;
  figures.unleased_processes = sources.unleased.size();
  figures.inventory_age_s = sources.inventory_age_s;
  for (std::size_t i = 0; i < sources.gpus.size(); ++i)
    figures.gpus.push_back(gpu_figures(sources, i));
  for (const broker::LeaseRow& lease : sources.leases)
    for (const broker::UsageRow& usage : lease.gpus)
      figures.shares.push_back(share_figures(lease, usage, sources));
  return figures;
}

}  // namespace aliquot::node
