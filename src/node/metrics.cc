#include "node/metrics.h"

#include <span>
#include <string_view>

#include "inventory/fragmentation.h"
#include "inventory/xids.h"
#include "node/metrics_compat.h"

namespace aliquot::node {
namespace {

using inventory::HealthState;

// One family with a sample for each item that has the figure.
template <typename T>
struct Row {
  std::string_view name;
  MetricType type;
  std::string_view unit;
  std::string_view help;
  std::optional<double> (*figure)(const T&);
};

template <typename From>
std::optional<double> number(const std::optional<From>& value) {
  if (!value) return std::nullopt;
  return static_cast<double>(*value);
}

constexpr Row<GpuFigures> kGpuRows[] = {
    {"aliquot_gpu_answer_age_seconds", MetricType::kGauge, "seconds",
     "Since the GPU last answered a probe; what it would have told is left out meanwhile.",
     [](const GpuFigures& g) { return g.age_s; }},
    {"aliquot_gpu_memory_total_bytes", MetricType::kGauge, "bytes", "The GPU's memory.",
     [](const GpuFigures& g) { return number(g.memory_total_bytes); }},
    {"aliquot_gpu_memory_used_bytes", MetricType::kGauge, "bytes",
     "Memory in use, as the driver says.",
     [](const GpuFigures& g) { return number(g.memory_used_bytes); }},
    {"aliquot_gpu_memory_granted_bytes", MetricType::kGauge, "bytes",
     "Sum of the memory limits of the leases on this GPU.",
     [](const GpuFigures& g) -> std::optional<double> {
       return static_cast<double>(g.memory_granted_bytes);
     }},
    {"aliquot_gpu_cores_granted_ratio", MetricType::kGauge, "ratio",
     "Sum of the compute guarantees of the leases on this GPU.",
     [](const GpuFigures& g) -> std::optional<double> { return g.cores_granted; }},
    {"aliquot_gpu_leases", MetricType::kGauge, "", "Leases that have a part of this GPU.",
     [](const GpuFigures& g) -> std::optional<double> { return g.leases; }},
    {"aliquot_gpu_utilization_ratio", MetricType::kGauge, "ratio",
     "Part of the driver's last sample period in which a kernel ran.",
     [](const GpuFigures& g) { return g.utilization; }},
    {"aliquot_gpu_temperature_celsius", MetricType::kGauge, "celsius", "Temperature of the chip.",
     [](const GpuFigures& g) { return g.temperature_c; }},
    {"aliquot_gpu_power_watts", MetricType::kGauge, "watts", "Power drawn.",
     [](const GpuFigures& g) { return g.power_w; }},
    {"aliquot_gpu_energy_joules", MetricType::kCounter, "joules",
     "Energy since the driver was loaded.", [](const GpuFigures& g) { return g.energy_j; }},
    {"aliquot_gpu_nvlinks", MetricType::kGauge, "", "NVLinks that the GPU has.",
     [](const GpuFigures& g) { return number(g.nvlinks); }},
    {"aliquot_gpu_nvlinks_up", MetricType::kGauge, "", "NVLinks that are up.",
     [](const GpuFigures& g) { return number(g.nvlinks_up); }},
};

constexpr Row<ShareFigures> kShareRows[] = {
    {"container_gpu_utilization", MetricType::kGauge, "",
     "Part of the GPU's time that the container's kernels took, in percent (0 to 100).",
     [](const ShareFigures& s) -> std::optional<double> {
       return s.utilization ? std::optional(*s.utilization * 100) : std::nullopt;
     }},
    {"container_gpu_memory_usage", MetricType::kGauge, "",
     "GPU memory charged to the container, in bytes.",
     [](const ShareFigures& s) -> std::optional<double> {
       return static_cast<double>(s.memory_used_bytes);
     }},
    {"container_gpu_memory_limit", MetricType::kGauge, "",
     "GPU memory that the container may use, in bytes.",
     [](const ShareFigures& s) -> std::optional<double> {
       return static_cast<double>(s.memory_limit_bytes);
     }},
    {"aliquot_container_gpu_utilization_ratio", MetricType::kGauge, "ratio",
     "Part of the GPU's time that the container's kernels took.",
     [](const ShareFigures& s) { return s.utilization; }},
    {"aliquot_container_gpu_share_ratio", MetricType::kGauge, "ratio",
     "Part of the GPU's time that is guaranteed; absent without a guarantee.",
     [](const ShareFigures& s) { return s.cores > 0 ? std::optional(s.cores) : std::nullopt; }},
    {"aliquot_container_gpu_memory_used_bytes", MetricType::kGauge, "bytes",
     "GPU memory charged to the container.",
     [](const ShareFigures& s) -> std::optional<double> {
       return static_cast<double>(s.memory_used_bytes);
     }},
    {"aliquot_container_gpu_memory_limit_bytes", MetricType::kGauge, "bytes",
     "GPU memory that the container may use.",
     [](const ShareFigures& s) -> std::optional<double> {
       return static_cast<double>(s.memory_limit_bytes);
     }},
    {"aliquot_container_gpu_busy_seconds", MetricType::kCounter, "seconds",
     "GPU time of the container's kernels: the counter behind container_gpu_utilization.",
     [](const ShareFigures& s) -> std::optional<double> { return s.busy_s; }},
    {"aliquot_container_gpu_throttled_seconds", MetricType::kCounter, "seconds",
     "Time that launches waited for the container's turn.",
     [](const ShareFigures& s) -> std::optional<double> { return s.throttled_s; }},
    {"aliquot_container_gpu_launches", MetricType::kCounter, "", "Kernels and graphs launched.",
     [](const ShareFigures& s) -> std::optional<double> {
       return static_cast<double>(s.launches);
     }},
    {"aliquot_container_gpu_memory_refusals", MetricType::kCounter, "",
     "Allocations refused because they would have passed the limit.",
     [](const ShareFigures& s) -> std::optional<double> {
       return static_cast<double>(s.refusals);
     }},
    {"aliquot_container_gpu_observed_refusals", MetricType::kCounter, "",
     "Allocations that would have been refused and were not: the container is observed only. All "
     "its GPUs together, at the first of them.",
     [](const ShareFigures& s) { return number(s.observed_refusals); }},
    {"aliquot_container_gpu_memory_granted_byte_seconds", MetricType::kCounter, "byte_seconds",
     "Memory limit times time.",
     [](const ShareFigures& s) -> std::optional<double> { return s.granted_byte_s; }},
    {"aliquot_container_gpu_memory_unused_byte_seconds", MetricType::kCounter, "byte_seconds",
     "The part of the granted byte-seconds that was not in use.",
     [](const ShareFigures& s) -> std::optional<double> { return s.unused_byte_s; }},
    {"aliquot_container_gpu_energy_joules", MetricType::kCounter, "joules",
     "The GPU's energy by the part of its time that the container held.",
     [](const ShareFigures& s) -> std::optional<double> { return s.energy_j; }},
    {"aliquot_container_gpu_processes", MetricType::kGauge, "",
     "Processes that are attached to the lease.",
     [](const ShareFigures& s) -> std::optional<double> {
       return static_cast<double>(s.processes);
     }},
    {"aliquot_container_gpu_bypasses", MetricType::kCounter, "",
     "Times that work past the gate or the ledger was found.",
     [](const ShareFigures& s) -> std::optional<double> {
       return static_cast<double>(s.bypasses);
     }},
};

Labels labels_of(const GpuFigures& gpu) {
  return {{"gpu", std::to_string(gpu.index)}, {"uuid", gpu.uuid}};
}

Labels labels_of(const ShareFigures& share) {
  return {{"namespace", share.name_space},
          {"pod", share.pod},
          {"container", share.container},
          {"gpu", std::to_string(share.gpu)},
          {"uuid", share.uuid}};
}

template <typename T>
void add_rows(std::span<const Row<T>> rows, const std::vector<T>& items,
              std::vector<Family>& families) {
  for (const Row<T>& row : rows) {
    Family family{
        std::string(row.name), row.type, std::string(row.unit), std::string(row.help), {}};
    for (const T& item : items)
      if (const auto value = row.figure(item)) family.samples.push_back({labels_of(item), *value});
    families.push_back(std::move(family));
  }
}

Labels with(Labels labels, std::string key, std::string value) {
  labels.emplace_back(std::move(key), std::move(value));
  return labels;
}

void add_health(const NodeFigures& node, std::vector<Family>& families) {
  Family health{"aliquot_gpu_health",
                MetricType::kGauge,
                "",
                "1 for the state that the GPU's health is in, 0 for the others.",
                {}};
  Family count{"aliquot_gpu_xid_errors",
               MetricType::kCounter,
               "",
               "XIDs seen, by number and class (application, driver, hardware).",
               {}};
  Family last{"aliquot_gpu_xid_last_timestamp_seconds",
              MetricType::kGauge,
              "seconds",
              "When an XID was last seen.",
              {}};
  for (const GpuFigures& gpu : node.gpus) {
    for (const HealthState state : inventory::kHealthStates)
      health.samples.push_back(
          {with(labels_of(gpu), "state", std::string(inventory::name_of(state))),
           gpu.health == state ? 1.0 : 0.0});
    for (const auto& [number, xid] : gpu.xids) {
      Labels labels = with(labels_of(gpu), "xid", std::to_string(number));
      last.samples.push_back({labels, xid.last_unix_s});
      const auto klass = inventory::describe_xid(number).klass;
      count.samples.push_back({with(std::move(labels), "class", std::string(name_of(klass))),
                               static_cast<double>(xid.count)});
    }
  }
  families.push_back(std::move(health));
  families.push_back(std::move(count));
  families.push_back(std::move(last));
}

void add_node(const NodeFigures& node, std::vector<Family>& families) {
  const auto add = [&](const char* name, MetricType type, const char* unit, const char* help,
                       std::optional<double> value) {
    families.push_back({name, type, unit, help, {}});
    if (value) families.back().samples.push_back({{}, *value});
  };
  families.push_back({"aliquot_node",
                      MetricType::kInfo,
                      "",
                      "What serves this node; simulated tells whether its GPUs are.",
                      {{{{"node", node.node},
                         {"version", node.version},
                         {"driver", node.driver},
                         {"simulated", node.simulated ? "true" : "false"}},
                        1}}});
  add("aliquot_node_registered", MetricType::kGauge, "", "1 while kubelet holds our stream.",
      node.registered ? 1 : 0);
  add("aliquot_node_inventory_age_seconds", MetricType::kGauge, "seconds",
      "Since the inventory was taken.", node.inventory_age_s);
  add("aliquot_node_memory_fragmentation_ratio", MetricType::kGauge, "ratio",
      "Free memory in remainders below a quarter of their GPU, of all free memory.",
      memory_fragmentation(node.gpus));
  add("aliquot_node_slot_mismatches", MetricType::kCounter, "",
      "Containers whose kubelet slot lay on another GPU than their assignment.",
      static_cast<double>(node.slot_mismatches));
  add("aliquot_node_leaked_leases", MetricType::kCounter, "",
      "Leases without a container that were found and ended.",
      static_cast<double>(node.leaked_leases));
  add("aliquot_node_podresources_refusals", MetricType::kCounter, "",
      "Answers that kubelet put off because its podresources API was asked too often.",
      static_cast<double>(node.lists_put_off));
  add("aliquot_node_unleased_processes", MetricType::kGauge, "",
      "Processes that use a GPU without a lease.", static_cast<double>(node.unleased_processes));
  double used = 0;
  double total = 0;
  for (const GpuFigures& gpu : node.gpus) {
    used += static_cast<double>(gpu.memory_used_bytes.value_or(0));
    total += static_cast<double>(gpu.memory_total_bytes.value_or(0));
  }
  add("cnb_gpu_memory_used_bytes", MetricType::kGauge, "bytes",
      "Memory in use on all GPUs that answer.", used);
  add("cnb_gpu_memory_total_bytes", MetricType::kGauge, "bytes", "Memory of all GPUs that answer.",
      total);
}

}  // namespace

std::vector<Family> node_metrics(const NodeFigures& figures, const MetricSets& sets) {
  std::vector<Family> families;
  add_node(figures, families);
  add_rows<GpuFigures>(kGpuRows, figures.gpus, families);
  add_health(figures, families);
  add_rows<ShareFigures>(kShareRows, figures.shares, families);
  if (sets.dcgm) add_dcgm_metrics(figures, families);
  if (sets.hami) add_hami_metrics(figures, families);
  return families;
}

double memory_fragmentation(const std::vector<GpuFigures>& gpus) {
  inventory::MemoryFragmentation fragmentation;
  for (const GpuFigures& gpu : gpus)
    fragmentation.add(gpu.memory_total_bytes.value_or(0), gpu.memory_granted_bytes);
  return fragmentation.ratio();
}

}  // namespace aliquot::node
