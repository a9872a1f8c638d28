#include "replay/openb.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "common/files.h"
#include "replay/csv.h"

namespace aliquot::replay {
namespace {

using model::Bytes;

constexpr Bytes kMiB = Bytes{1} << 20;
constexpr std::int64_t kMostCpu = 1'000'000;                    // milli
constexpr std::int64_t kMostMemory = std::int64_t{1} << 26;     // MiB
constexpr std::int64_t kMostGpuMemory = std::int64_t{1} << 22;  // MiB
constexpr std::int64_t kMostSeconds = 10'000'000'000;
constexpr int kMaxPods = 1001;  // the node descriptions of the FGD artifact

const std::vector<std::string_view> kNodeHeader{"sn", "cpu_milli", "memory_mib", "gpu", "model"};
const std::vector<std::string_view> kPodHeader{"name", "cpu_milli", "memory_mib", "num_gpu",
                                               "gpu_milli"};
const std::vector<std::string_view> kPodMore{"gpu_spec",      "qos",           "pod_phase",
                                             "creation_time", "deletion_time", "scheduled_time"};

std::vector<std::string> split_models(std::string_view text) {
  std::vector<std::string> models;
  while (!text.empty()) {
    const std::size_t bar = text.find('|');
    models.emplace_back(text.substr(0, bar));
    text.remove_prefix(bar == std::string_view::npos ? text.size() : bar + 1);
  }
  std::sort(models.begin(), models.end());
  return models;
}

Status read_times(const CsvReader& csv, OpenbPod& pod) {
  CsvRow row(csv);
  pod.gpu_spec = split_models(csv.field(5));
  pod.qos = csv.field(6);
  pod.phase = csv.field(7);
  pod.created_s = row.number(8, kMostSeconds);
  pod.deleted_s = row.number(9, kMostSeconds);
  if (!csv.field(10).empty()) pod.scheduled_s = row.number(10, kMostSeconds);
  if (row.error()) return *row.error();
  if (pod.deleted_s < pod.created_s) return csv.error_at(9, "deletion_time: before creation_time");
  return {};
}

Result<OpenbPod> read_pod(const CsvReader& csv, bool with_times) {
  OpenbPod pod;
  CsvRow row(csv);
  pod.name = csv.field(0);
  pod.cpu_milli = row.number(1, kMostCpu);
  pod.memory_mib = row.number(2, kMostMemory);
  pod.num_gpu = static_cast<int>(row.number(3, model::kMaxGpusPerNode));
  pod.gpu_milli = static_cast<int>(row.number(4, model::kWholeGpuMilli));
  if (row.error()) return *row.error();
  if (pod.name.empty()) return csv.error_at(0, "name: empty");
  if ((pod.num_gpu == 0) != (pod.gpu_milli == 0))
    return csv.error_at(4, "gpu_milli: must be 0 exactly where num_gpu is 0");
  if (with_times)
    if (Status ok = read_times(csv, pod); !ok) return ok.error();
  return pod;
}

}  // namespace

Result<std::vector<model::NodeSpec>> parse_openb_nodes(std::string_view text,
                                                       std::string_view name) {
  CsvReader csv(text, name);
  if (Status ok = csv.expect_header(kNodeHeader); !ok) return ok.error();
  const Result<bool> with_memory = csv.header_continues({"gpu_memory_mib"});
  if (!with_memory) return with_memory.error();
  std::vector<model::NodeSpec> nodes;
  for (;;) {
    const Result<bool> more = csv.next();
    if (!more) return more.error();
    if (!*more) return nodes;
    CsvRow row(csv);
    model::NodeSpec node;
    node.name = csv.field(0);
    node.cpu_milli = row.number(1, kMostCpu);
    node.memory_bytes = row.number(2, kMostMemory) * kMiB;
    node.gpu_count = static_cast<int>(row.number(3, model::kMaxGpusPerNode));
    node.gpu.name = csv.field(4);
    if (*with_memory) node.gpu.memory_bytes = row.number(5, kMostGpuMemory) * kMiB;
    node.max_pods = kMaxPods;
    if (row.error()) return *row.error();
    if (node.name.empty()) return csv.error_at(0, "sn: empty");
    if ((node.gpu_count > 0) == node.gpu.name.empty())
      return csv.error_at(4, "model: must be given exactly where gpu is not 0");
    nodes.push_back(std::move(node));
  }
}

Result<std::vector<OpenbPod>> parse_openb_pods(std::string_view text, std::string_view name) {
  CsvReader csv(text, name);
  if (Status ok = csv.expect_header(kPodHeader); !ok) return ok.error();
  const Result<bool> with_times = csv.header_continues(kPodMore);
  if (!with_times) return with_times.error();
  std::vector<OpenbPod> pods;
  for (;;) {
    const Result<bool> more = csv.next();
    if (!more) return more.error();
    if (!*more) return pods;
    Result<OpenbPod> pod = read_pod(csv, *with_times);
    if (!pod) return pod.error();
    pods.push_back(*std::move(pod));
  }
}

Result<std::vector<model::NodeSpec>> read_openb_nodes(const std::filesystem::path& path) {
  const Result<std::string> text = read_file(path);
  if (!text) return text.error();
  return parse_openb_nodes(*text, path.filename().string());
}

Result<std::vector<OpenbPod>> read_openb_pods(const std::filesystem::path& path) {
  const Result<std::string> text = read_file(path);
  if (!text) return text.error();
  return parse_openb_pods(*text, path.filename().string());
}

model::Request request_of(const OpenbPod& pod) {
  model::Container main{"main", pod.cpu_milli, pod.memory_mib * kMiB, std::nullopt};
  if (pod.num_gpu > 0) {
    const bool whole = pod.gpu_milli == model::kWholeGpuMilli;
    main.gpu = model::GpuAsk{whole ? model::GpuKind::kWhole : model::GpuKind::kShare,
                             pod.num_gpu,
                             whole ? 0 : pod.gpu_milli,
                             0,
                             0,
                             {}};
  }
  model::Request request;
  request.name = pod.name;
  request.containers = {std::move(main)};
  request.gpu_models = pod.gpu_spec;
  return request;
}

scheduler::WorkShape work_shape_of(const OpenbPod& pod) {
  return {pod.cpu_milli, pod.gpu_milli, pod.num_gpu, pod.gpu_spec, 1};
}

}  // namespace aliquot::replay
