// Of public_traces.h: Alibaba's online service of 2025 and the node mix of 2026.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <string>

#include "replay/csv.h"
#include "replay/public_traces.h"

namespace aliquot::replay {
namespace {

using model::Bytes;

constexpr double kMostSeconds = 1e10;
constexpr std::int64_t kMostCores = 1'000;
constexpr double kMostGiB = 65'536;
constexpr Bytes kGiB = Bytes{1} << 30;
constexpr Bytes kMemoryPerCore = 8 * kGiB;  // of the node mix, which tells none

const std::vector<std::string_view> kOnlineColumns{"instance_sn",   "role",
                                                   "app_name",      "cpu_request",
                                                   "cpu_limit",     "gpu_request",
                                                   "gpu_limit",     "rdma_request",
                                                   "rdma_limit",    "memory_request",
                                                   "memory_limit",  "disk_request",
                                                   "disk_limit",    "max_instance_per_node",
                                                   "creation_time", "scheduled_time",
                                                   "deletion_time"};
const std::vector<std::string_view> kSpotColumns{"gpu_model", "gpu_capacity_num", "cpu_num",
                                                 "node_name"};

// An instance as listed; what it lacks is known once all are read.
struct Instance {
  Job job;
  std::optional<double> created_s;
  std::optional<double> scheduled_s;
  std::optional<double> deleted_s;
};

std::optional<double> time_of(const CsvReader& csv, CsvRow& row, std::size_t column) {
  if (csv.field(column).empty()) return std::nullopt;
  return row.decimal(column, kMostSeconds);
}

Result<Instance> read_instance(const CsvReader& csv) {
  CsvRow row(csv);
  if (Status ok = check_job_name(csv, 0); !ok) return ok.error();
  if (csv.field(1) != "CN" && csv.field(1) != "HN")
    return csv.error_at(1, "role: expected CN or HN");
  const std::int64_t cores = row.number(3, kMostCores);
  const auto gpus = static_cast<int>(row.number(5, model::kMaxGpusPerNode));
  const auto memory = static_cast<Bytes>(row.decimal(9, kMostGiB) * static_cast<double>(kGiB));
  for (const std::size_t column : {4U, 6U, 7U, 8U, 10U, 11U, 12U})
    (void)row.decimal(column, kMostGiB);
  Instance instance;
  instance.created_s = time_of(csv, row, 14);
  instance.scheduled_s = time_of(csv, row, 15);
  instance.deleted_s = time_of(csv, row, 16);
  if (row.error()) return *row.error();
  if (instance.scheduled_s && !instance.created_s)
    return csv.error_at(14, "creation_time: missing where scheduled_time is given");
  if (instance.scheduled_s && *instance.scheduled_s < *instance.created_s)
    return csv.error_at(15, "scheduled_time: before creation_time");
  if (instance.deleted_s &&
      *instance.deleted_s < instance.scheduled_s.value_or(instance.created_s.value_or(0)))
    return csv.error_at(16, "deletion_time: before it was scheduled");
  instance.job.request = whole_gpu_request(std::string(csv.field(0)), gpus, 0);
  instance.job.request.containers[0].cpu_milli = cores * 1'000;
  instance.job.request.containers[0].memory_bytes = memory;
  return instance;
}

// Who was there before the trace began has no creation time, who outlived it no deletion time.
void set_times(std::vector<Instance>& instances) {
  double begin = std::numeric_limits<double>::max();
  double end = 0;
  for (const Instance& i : instances)
    for (const std::optional<double>& time : {i.created_s, i.scheduled_s, i.deleted_s})
      if (time) begin = std::min(begin, *time), end = std::max(end, *time);
  begin = std::min(begin, end);
  for (Instance& i : instances) {
    const double arrival = i.created_s.value_or(begin);
    const double start = i.scheduled_s.value_or(arrival);
    i.job.arrival_s = std::llround(arrival);
    i.job.duration_s = std::max<std::int64_t>(1, std::llround(i.deleted_s.value_or(end) - start));
  }
}

}  // namespace

bool is_online_trace(std::string_view text) { return text.starts_with("instance_sn,"); }
bool is_spot_nodes(std::string_view text) { return text.starts_with("gpu_model,"); }

Result<Trace> parse_online_trace(std::string_view text, std::string_view name) {
  CsvReader csv(text, name);
  if (Status ok = csv.expect_header(kOnlineColumns); !ok) return ok.error();
  if (const Result<bool> more = csv.header_continues({}); !more) return more.error();
  std::vector<Instance> instances;
  std::set<std::string, std::less<>> names;
  for (;;) {
    const Result<bool> more = csv.next();
    if (!more) return more.error();
    if (!*more) break;
    Result<Instance> instance = read_instance(csv);
    if (!instance) return instance.error();
    if (!names.insert(instance->job.request.name).second)
      return csv.error_at(0, "instance_sn: '" + instance->job.request.name + "' is there already");
    instances.push_back(*std::move(instance));
  }
  set_times(instances);
  Trace trace{std::string(name), {}, {}};
  trace.assumptions = {
      "Instances without a creation time were there when the trace begins, those without a "
      "deletion "
      "time run until it ends.",
      "RDMA, disk and the greatest number of instances on a node are in the trace, but bind nobody "
      "here."};
  for (Instance& instance : instances) trace.jobs.push_back(std::move(instance.job));
  sort_by_arrival(trace);
  return trace;
}

Result<std::vector<model::NodeSpec>> parse_spot_nodes(std::string_view text,
                                                      std::string_view name) {
  CsvReader csv(text, name);
  if (Status ok = csv.expect_header(kSpotColumns); !ok) return ok.error();
  if (const Result<bool> more = csv.header_continues({}); !more) return more.error();
  std::vector<model::NodeSpec> nodes;
  for (;;) {
    const Result<bool> more = csv.next();
    if (!more) return more.error();
    if (!*more) return nodes;
    CsvRow row(csv);
    model::NodeSpec node;
    node.gpu.name = csv.field(0);
    node.gpu_count = static_cast<int>(row.number(1, model::kMaxGpusPerNode));
    const std::int64_t cores = row.number(2, kMostCores);
    if (row.error()) return *row.error();
    if (csv.field(3).empty()) return csv.error_at(3, "node_name: empty");
    if ((node.gpu_count > 0) == node.gpu.name.empty())
      return csv.error_at(0, "gpu_model: must be given exactly where gpu_capacity_num is not 0");
    node.name = "node-" + std::string(csv.field(3));
    node.cpu_milli = cores * 1'000;
    node.memory_bytes = cores * kMemoryPerCore;
    nodes.push_back(std::move(node));
  }
}

}  // namespace aliquot::replay
