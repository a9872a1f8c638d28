#include "replay/trace.h"

#include <algorithm>
#include <optional>
#include <set>
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
constexpr std::int64_t kMostSeconds = 10'000'000'000;           // three centuries
constexpr std::size_t kLongestName = 253;

enum Column : std::size_t {
  kName,
  kArrival,
  kDuration,
  kGpus,
  kGpuMilli,
  kGpuMemory,
  kCpu,
  kMemory,
  kModels
};
const std::vector<std::string_view> kHeader{"name",      "arrival_s",  "duration_s",
                                            "gpus",      "gpu_milli",  "gpu_memory_mib",
                                            "cpu_milli", "memory_mib", "gpu_models"};

bool printable(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= ' ' && c != '\x7f'; });
}

Result<std::vector<std::string>> models_of(const CsvReader& csv) {
  std::vector<std::string> models;
  std::string_view text = csv.field(kModels);
  if (text.empty()) return models;
  for (;;) {
    const std::size_t bar = text.find('|');
    const std::string_view one = text.substr(0, bar);
    if (one.empty() || !printable(one))
      return csv.error_at(kModels, "gpu_models: write exact names, with | between them");
    models.emplace_back(one);
    if (bar == std::string_view::npos) break;
    text.remove_prefix(bar + 1);
  }
  std::ranges::sort(models);
  models.erase(std::ranges::unique(models).begin(), models.end());
  return models;
}

// The GPUs of the line, into the request: whole ones, or shares by compute, memory or both.
Status read_gpus(const CsvReader& csv, CsvRow& row, model::Request& request) {
  const auto count = static_cast<int>(row.number(kGpus, model::kMaxGpusPerNode));
  const auto milli = static_cast<int>(row.number(kGpuMilli, model::kWholeGpuMilli));
  const Bytes memory = row.number(kGpuMemory, kMostGpuMemory) * kMiB;
  if (const std::optional<Error>& error = row.error()) return *error;
  if (count == 0) {
    if (milli != 0) return csv.error_at(kGpuMilli, "gpu_milli: must be 0 where gpus is 0");
    if (memory != 0) return csv.error_at(kGpuMemory, "gpu_memory_mib: must be 0 where gpus is 0");
    if (!request.gpu_models.empty())
      return csv.error_at(kModels, "gpu_models: must be empty where gpus is 0");
    return {};
  }
  if (milli == 0 && memory == 0)
    return csv.error_at(kGpuMilli, "gpu_milli: asks nothing of its GPUs (1000 is a whole GPU)");
  const bool whole = milli == model::kWholeGpuMilli;
  if (whole) request.floor.memory_bytes = memory;
  request.containers[0].gpu = model::GpuAsk{whole ? model::GpuKind::kWhole : model::GpuKind::kShare,
                                            count,
                                            whole ? 0 : milli,
                                            whole ? 0 : memory,
                                            0,
                                            {}};
  return {};
}

Result<Job> read_job(const CsvReader& csv) {
  CsvRow row(csv);
  Job job;
  job.request.name = csv.field(kName);
  if (job.request.name.empty() || job.request.name.size() > kLongestName ||
      !printable(job.request.name))
    return csv.error_at(kName, "name: 1 to " + std::to_string(kLongestName) + " characters");
  job.arrival_s = row.number(kArrival, kMostSeconds);
  job.duration_s = row.number(kDuration, kMostSeconds);
  Result<std::vector<std::string>> models = models_of(csv);
  if (!models) return models.error();
  job.request.gpu_models = *std::move(models);
  job.request.containers = {
      {"main", row.number(kCpu, kMostCpu), row.number(kMemory, kMostMemory) * kMiB, std::nullopt}};
  if (Status ok = read_gpus(csv, row, job.request); !ok) return ok.error();
  if (job.duration_s == 0) return csv.error_at(kDuration, "duration_s: must be at least 1");
  return job;
}

void sort_by_arrival(std::vector<Job>& jobs) {
  std::ranges::stable_sort(jobs, {}, &Job::arrival_s);
}

Result<Trace> trace_of(const std::vector<OpenbPod>& pods, const std::string& name) {
  Trace trace{name, {}};
  for (const OpenbPod& pod : pods) {
    const std::int64_t started = pod.scheduled_s.value_or(pod.created_s);
    trace.jobs.push_back(
        {request_of(pod), pod.created_s, std::max<std::int64_t>(1, pod.deleted_s - started)});
  }
  sort_by_arrival(trace.jobs);
  return trace;
}

bool ask_fits_model(const model::Request& request, const std::string& name) {
  return request.gpu_models.empty() ||
         std::ranges::find(request.gpu_models, name) != request.gpu_models.end();
}

}  // namespace

Result<Trace> parse_trace(std::string_view text, std::string_view name) {
  CsvReader csv(text, name);
  if (Status ok = csv.expect_header(kHeader); !ok) return ok.error();
  if (const Result<bool> more = csv.header_continues({}); !more) return more.error();
  Trace trace{std::string(name), {}};
  std::set<std::string, std::less<>> names;
  for (;;) {
    const Result<bool> more = csv.next();
    if (!more) return more.error();
    if (!*more) break;
    Result<Job> job = read_job(csv);
    if (!job) return job.error();
    if (!names.insert(job->request.name).second)
      return csv.error_at(kName, "name: '" + job->request.name + "' is there already");
    trace.jobs.push_back(*std::move(job));
  }
  sort_by_arrival(trace.jobs);
  return trace;
}

Result<Trace> read_trace(const std::filesystem::path& path) {
  const Result<std::string> text = read_file(path);
  if (!text) return text.error();
  const std::string name = path.filename().string();
  if (!text->starts_with("name,cpu_milli,")) return parse_trace(*text, name);
  const Result<std::vector<OpenbPod>> pods = parse_openb_pods(*text, name);
  if (!pods) return pods.error();
  if (text->substr(0, text->find('\n')).find("deletion_time") == std::string::npos)
    return Error{Errc::kInvalid,
                 name + ": has no times, so nothing can be replayed (try --inflation)"};
  return trace_of(*pods, name);
}

Trace condensed(Trace trace, std::int64_t times) {
  if (trace.jobs.empty()) return trace;
  const std::int64_t first = trace.jobs.front().arrival_s;
  for (Job& job : trace.jobs) job.arrival_s = first + (job.arrival_s - first) / times;
  return trace;
}

scheduler::WorkShape work_shape_of(const model::Request& request,
                                   const std::vector<model::NodeSpec>& nodes) {
  scheduler::WorkShape shape{request.containers[0].cpu_milli, 0, 0, request.gpu_models, 1};
  const std::optional<model::GpuAsk>& gpu = request.containers[0].gpu;
  if (!gpu) return shape;
  shape.gpus = gpu->count;
  shape.gpu_milli = gpu->kind == model::GpuKind::kWhole ? model::kWholeGpuMilli : gpu->cores_milli;
  Bytes largest = 0;
  for (const model::NodeSpec& node : nodes)
    if (ask_fits_model(request, node.gpu.name)) largest = std::max(largest, node.gpu.memory_bytes);
  if (gpu->memory_bytes > 0 && largest > 0) {
    // Up: the part must suffice.
    const Bytes part = (gpu->memory_bytes * model::kWholeGpuMilli + largest - 1) / largest;
    shape.gpu_milli =
        std::max(shape.gpu_milli, static_cast<int>(std::min<Bytes>(part, model::kWholeGpuMilli)));
  }
  return shape;
}

}  // namespace aliquot::replay
