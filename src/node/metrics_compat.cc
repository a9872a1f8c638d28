#include "node/metrics_compat.h"

#include <string_view>

namespace aliquot::node {
namespace {

constexpr double kMib = 1u << 20;

template <typename From>
std::optional<double> scaled(const std::optional<From>& value, double by) {
  if (!value) return std::nullopt;
  return static_cast<double>(*value) * by;
}

struct DcgmRow {
  std::string_view name;
  MetricType type;
  std::string_view help;
  std::optional<double> (*figure)(const GpuFigures&);
};

// Names and units of dcgm-exporter's default list: MiB, mJ, MHz, percent.
constexpr DcgmRow kDcgmRows[] = {
    {"DCGM_FI_DEV_SM_CLOCK", MetricType::kGauge, "SM clock (in MHz).",
     [](const GpuFigures& g) { return g.sm_mhz; }},
    {"DCGM_FI_DEV_MEM_CLOCK", MetricType::kGauge, "Memory clock (in MHz).",
     [](const GpuFigures& g) { return g.memory_mhz; }},
    {"DCGM_FI_DEV_GPU_TEMP", MetricType::kGauge, "GPU temperature (in C).",
     [](const GpuFigures& g) { return g.temperature_c; }},
    {"DCGM_FI_DEV_POWER_USAGE", MetricType::kGauge, "Power draw (in W).",
     [](const GpuFigures& g) { return g.power_w; }},
    // A counter there, under a name that ours may not have.
    {"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", MetricType::kUntyped,
     "Total energy consumption since boot (in mJ).",
     [](const GpuFigures& g) { return scaled(g.energy_j, 1000); }},
    {"DCGM_FI_DEV_MEM_COPY_UTIL", MetricType::kGauge, "Memory utilization (in %).",
     [](const GpuFigures& g) { return scaled(g.memory_utilization, 100); }},
    {"DCGM_FI_DEV_GPU_UTIL", MetricType::kGauge, "GPU utilization (in %).",
     [](const GpuFigures& g) { return scaled(g.utilization, 100); }},
    {"DCGM_FI_DEV_FB_USED", MetricType::kGauge, "Framebuffer memory used (in MiB).",
     [](const GpuFigures& g) { return scaled(g.memory_used_bytes, 1 / kMib); }},
    {"DCGM_FI_DEV_FB_FREE", MetricType::kGauge, "Framebuffer memory free (in MiB).",
     [](const GpuFigures& g) -> std::optional<double> {
       if (!g.memory_total_bytes || !g.memory_used_bytes) return std::nullopt;
       return static_cast<double>(*g.memory_total_bytes - *g.memory_used_bytes) / kMib;
     }},
    {"DCGM_FI_DEV_XID_ERRORS", MetricType::kGauge, "Value of the last XID error encountered.",
     [](const GpuFigures& g) -> std::optional<double> {
       double last = 0;
       double when = 0;
       for (const auto& [number, xid] : g.xids)
         if (xid.last_unix_s >= when) {
           when = xid.last_unix_s;
           last = number;
         }
       return last;
     }},
};

struct HamiRow {
  std::string_view name;
  std::string_view help;
  std::optional<double> (*figure)(const ShareFigures&);
};

constexpr HamiRow kHamiRows[] = {
    {"hami_vgpu_memory_used_bytes", "vGPU device memory used (in bytes).",
     [](const ShareFigures& s) -> std::optional<double> {
       return static_cast<double>(s.memory_used_bytes);
     }},
    {"hami_vgpu_memory_limit_bytes", "vGPU device memory limit (in bytes).",
     [](const ShareFigures& s) -> std::optional<double> {
       return static_cast<double>(s.memory_limit_bytes);
     }},
    // HAMi's "ratio" is a percentage.
    {"hami_container_device_utilization_ratio", "Container device utilization (0 to 100).",
     [](const ShareFigures& s) { return scaled(s.utilization, 100); }},
};

const ShareFigures* only_share_of(const NodeFigures& node, const GpuFigures& gpu) {
  const ShareFigures* only = nullptr;
  for (const ShareFigures& share : node.shares) {
    if (share.uuid != gpu.uuid) continue;
    if (only != nullptr) return nullptr;
    only = &share;
  }
  return only;
}

// dcgm-exporter labels a GPU with the container that has it; of a shared GPU there is no one.
Labels dcgm_labels(const NodeFigures& node, const GpuFigures& gpu) {
  Labels labels = {{"gpu", std::to_string(gpu.index)},
                   {"UUID", gpu.uuid},
                   {"device", "nvidia" + std::to_string(gpu.index)},
                   {"modelName", gpu.model},
                   {"Hostname", node.node}};
  if (const ShareFigures* share = only_share_of(node, gpu)) {
    labels.emplace_back("container", share->container);
    labels.emplace_back("namespace", share->name_space);
    labels.emplace_back("pod", share->pod);
  }
  return labels;
}

}  // namespace

void add_dcgm_metrics(const NodeFigures& figures, std::vector<Family>& families) {
  for (const DcgmRow& row : kDcgmRows) {
    Family family{std::string(row.name), row.type, "", std::string(row.help), {}};
    for (const GpuFigures& gpu : figures.gpus)
      if (const auto value = row.figure(gpu))
        family.samples.push_back({dcgm_labels(figures, gpu), *value});
    families.push_back(std::move(family));
  }
}

void add_hami_metrics(const NodeFigures& figures, std::vector<Family>& families) {
  const auto add_gpu = [&](const char* name, const char* help,
                           std::optional<double> (*figure)(const GpuFigures&)) {
    Family family{name, MetricType::kGauge, "", help, {}};
    for (const GpuFigures& gpu : figures.gpus)
      if (const auto value = figure(gpu))
        family.samples.push_back({{{"node", figures.node},
                                   {"device_uuid", gpu.uuid},
                                   {"device_index", std::to_string(gpu.index)},
                                   {"device_type", gpu.model}},
                                  *value});
    families.push_back(std::move(family));
  };
  add_gpu("hami_gpu_memory_limit_bytes", "GPU device memory (in bytes).",
          [](const GpuFigures& g) { return scaled(g.memory_total_bytes, 1); });
  add_gpu("hami_gpu_memory_allocated_bytes", "GPU device memory allocated (in bytes).",
          [](const GpuFigures& g) -> std::optional<double> {
            return static_cast<double>(g.memory_granted_bytes);
          });
  add_gpu("hami_gpu_core_allocated_ratio", "GPU cores allocated.",
          [](const GpuFigures& g) -> std::optional<double> { return g.cores_granted; });
  add_gpu("hami_gpu_shared_count", "Containers that share the GPU.",
          [](const GpuFigures& g) -> std::optional<double> { return g.leases; });
  add_gpu("hami_host_gpu_memory_used_bytes", "GPU device memory used (in bytes).",
          [](const GpuFigures& g) { return scaled(g.memory_used_bytes, 1); });
  add_gpu("hami_host_gpu_utilization_ratio", "GPU utilization (0 to 100).",
          [](const GpuFigures& g) { return scaled(g.utilization, 100); });
  for (const HamiRow& row : kHamiRows) {
    Family family{std::string(row.name), MetricType::kGauge, "", std::string(row.help), {}};
    for (const ShareFigures& share : figures.shares)
      if (const auto value = row.figure(share))
        family.samples.push_back({{{"namespace", share.name_space},
                                   {"pod", share.pod},
                                   {"container", share.container},
                                   {"device_uuid", share.uuid}},
                                  *value});
    families.push_back(std::move(family));
  }
}

}  // namespace aliquot::node
