#include "replay/trace.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "common/files.h"
#include "replay/csv.h"
#include "replay/public_traces.h"

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
  kModels,
  kPods,
  kUsed,
  kAllReduce,
  kRead,
  kReference
};
const std::vector<std::string_view> kHeader{"name",      "arrival_s",  "duration_s",
                                            "gpus",      "gpu_milli",  "gpu_memory_mib",
                                            "cpu_milli", "memory_mib", "gpu_models"};
const std::vector<std::string_view> kMore{"pods", "used_milli", "all_reduce_mb_s", "read_mb_s",
                                          "duration_gpu"};
constexpr std::int64_t kMostPods = 4'096;
constexpr std::int64_t kMostMbPerS = 100'000'000;

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
  if (const Error* error = row.error()) return *error;
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

// The columns that may follow: what the job does with what it holds.
Status read_work(const CsvReader& csv, CsvRow& row, Job& job) {
  job.pods = static_cast<int>(row.number(kPods, kMostPods));
  job.work.used_milli = static_cast<int>(row.number(kUsed, model::kWholeGpuMilli));
  job.work.all_reduce_mb_s = row.number(kAllReduce, kMostMbPerS);
  job.work.read_mb_s = row.number(kRead, kMostMbPerS);
  job.work.gpu_model = csv.field(kReference);
  if (row.error()) return *row.error();
  if (job.pods == 0) return csv.error_at(kPods, "pods: must be at least 1");
  if (!printable(job.work.gpu_model))
    return csv.error_at(kReference, "duration_gpu: write an exact name, or nothing");
  if (job.gpus() > 0) return {};
  if (job.work.used_milli > 0) return csv.error_at(kUsed, "used_milli: must be 0 where gpus is 0");
  if (job.work.read_mb_s > 0) return csv.error_at(kRead, "read_mb_s: must be 0 where gpus is 0");
  return {};
}

Result<Job> read_job(const CsvReader& csv, bool with_work) {
  CsvRow row(csv);
  Job job;
  if (Status ok = check_job_name(csv, kName); !ok) return ok.error();
  job.request.name = csv.field(kName);
  job.arrival_s = row.number(kArrival, kMostSeconds);
  job.duration_s = row.number(kDuration, kMostSeconds);
  Result<std::vector<std::string>> models = models_of(csv);
  if (!models) return models.error();
  job.request.gpu_models = *std::move(models);
  job.request.containers = {
      {"main", row.number(kCpu, kMostCpu), row.number(kMemory, kMostMemory) * kMiB, std::nullopt}};
  if (Status ok = read_gpus(csv, row, job.request); !ok) return ok.error();
  if (job.duration_s == 0) return csv.error_at(kDuration, "duration_s: must be at least 1");
  if (with_work)
    if (Status ok = read_work(csv, row, job); !ok) return ok.error();
  return job;
}

Result<Trace> trace_of(const std::vector<OpenbPod>& pods, const std::string& name) {
  Trace trace{name, {}, {}};
  for (const OpenbPod& pod : pods) {
    const std::int64_t started = pod.scheduled_s.value_or(pod.created_s);
    trace.jobs.push_back(
        {request_of(pod), pod.created_s, std::max<std::int64_t>(1, pod.deleted_s - started)});
  }
  sort_by_arrival(trace);
  return trace;
}

bool ask_fits_model(const model::Request& request, const std::string& name) {
  return request.gpu_models.empty() ||
         std::ranges::find(request.gpu_models, name) != request.gpu_models.end();
}

}  // namespace

int Job::gpus_per_pod() const {
  int gpus = 0;
  for (const model::Container& container : request.containers)
    if (container.gpu) gpus += container.gpu->count;
  return gpus;
}

int pods_of(int gpus, int most_per_pod) {
  for (int pods = std::max(1, (gpus + most_per_pod - 1) / most_per_pod); pods < gpus; ++pods)
    if (gpus % pods == 0) return pods;
  return std::max(1, gpus);
}

model::Request whole_gpu_request(std::string name, int gpus, std::int64_t cpu_milli_per_gpu) {
  model::Request request;
  request.name = std::move(name);
  request.containers = {{"main", gpus * cpu_milli_per_gpu, 0, std::nullopt}};
  if (gpus > 0)
    request.containers[0].gpu = model::GpuAsk{model::GpuKind::kWhole, gpus, 0, 0, 0, {}};
  return request;
}

void sort_by_arrival(Trace& trace) { std::ranges::stable_sort(trace.jobs, {}, &Job::arrival_s); }

Trace cut_to_nodes(Trace trace, const std::vector<model::NodeSpec>& nodes) {
  int most = 0;
  for (const model::NodeSpec& node : nodes) most = std::max(most, node.gpu_count);
  for (Job& job : trace.jobs) {
    std::optional<model::GpuAsk>& gpu = job.request.containers[0].gpu;
    if (most == 0 || !gpu || gpu->kind != model::GpuKind::kWhole || gpu->count <= most) continue;
    const int before = gpu->count;
    const int all = job.gpus();
    job.pods = pods_of(all, most);
    gpu->count = all / job.pods;
    model::Container& main = job.request.containers[0];
    main.cpu_milli = main.cpu_milli * gpu->count / before;
    main.memory_bytes = main.memory_bytes / before * gpu->count;
  }
  return trace;
}

Status check_job_name(const CsvReader& csv, std::size_t column) {
  const std::string_view name = csv.field(column);
  if (name.empty() || name.size() > kLongestName || !printable(name))
    return csv.error_at(column, "name: 1 to " + std::to_string(kLongestName) + " characters");
  return {};
}

Result<Trace> parse_trace(std::string_view text, std::string_view name) {
  CsvReader csv(text, name);
  if (Status ok = csv.expect_header(kHeader); !ok) return ok.error();
  const Result<bool> with_work = csv.header_continues(kMore);
  if (!with_work) return with_work.error();
  Trace trace{std::string(name), {}, {}};
  std::set<std::string, std::less<>> names;
  for (;;) {
    const Result<bool> more = csv.next();
    if (!more) return more.error();
    if (!*more) break;
    Result<Job> job = read_job(csv, *with_work);
    if (!job) return job.error();
    if (!names.insert(job->request.name).second)
      return csv.error_at(kName, "name: '" + job->request.name + "' is there already");
    trace.jobs.push_back(*std::move(job));
  }
  sort_by_arrival(trace);
  return trace;
}

Result<Trace> read_trace(const std::filesystem::path& path) {
  const Result<std::string> text = read_file(path);
  if (!text) return text.error();
  const std::string name = path.filename().string();
  if (is_philly_trace(*text)) return parse_philly_trace(*text, name);
  if (is_pollux_trace(*text)) return parse_pollux_trace(*text, name);
  if (is_online_trace(*text)) return parse_online_trace(*text, name);
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
