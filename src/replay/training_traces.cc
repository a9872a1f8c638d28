// Of public_traces.h: the two traces of training jobs, Philly-derived and Pollux.
#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "replay/csv.h"
#include "replay/job_facts.h"
#include "replay/public_traces.h"

namespace aliquot::replay {
namespace {

constexpr std::int64_t kMostSeconds = 10'000'000'000;
constexpr std::int64_t kMostSteps = 1'000'000'000'000;
constexpr std::int64_t kMostBatch = 100'000'000;
// What the traces do not tell of the host; little, so that GPUs are what a job waits for.
constexpr std::int64_t kCpuMilliPerGpu = 1'000;

const std::vector<std::string_view> kPhillyColumns{
    "model", "command", "step flag", "needs data", "steps", "arrival_s", "scale_factor"};
const std::vector<std::string_view> kPolluxColumns{"name", "time", "application", "num_replicas",
                                                   "batch_size"};

template <typename Row>
const Row* find_row(std::span<const Row> rows, std::string_view name) {
  const auto found = std::ranges::find(rows, name, &Row::name);
  return found == rows.end() ? nullptr : &*found;
}

template <typename Row>
std::string names_of(std::span<const Row> rows) {
  std::string names;
  for (const Row& row : rows) names += (names.empty() ? "" : ", ") + std::string(row.name);
  return names;
}

// Seconds of work, at least one; more than a trace may last is an error of the caller.
std::int64_t seconds(double s) { return std::max<std::int64_t>(1, std::llround(s)); }

Job training_job(std::string name, int gpus, double duration_s, double reduced_mb_s) {
  Job job;
  job.pods = pods_of(gpus, kMostGpusPerPod);
  job.request = whole_gpu_request(std::move(name), gpus / job.pods, kCpuMilliPerGpu);
  job.duration_s = seconds(duration_s);
  job.work.all_reduce_mb_s = gpus > 1 ? std::llround(reduced_mb_s) : 0;
  return job;
}

Result<Job> read_philly(const CsvReader& csv, std::string_view file) {
  CsvRow row(csv);
  const PhillyModel* const model = find_row(philly_models(), csv.field(0));
  if (model == nullptr)
    return csv.error_at(0, "model: '" + std::string(csv.field(0)) + "' is not known; there are " +
                               names_of(philly_models()));
  if (csv.field(3) != "0" && csv.field(3) != "1")
    return csv.error_at(3, "needs data: expected 0 or 1");
  const auto steps = static_cast<double>(row.number(4, kMostSteps));
  const double arrival = row.decimal(5, static_cast<double>(kMostSeconds));
  const auto gpus = static_cast<int>(row.number(6, kMostGpusPerJob));
  if (row.error()) return *row.error();
  if (steps == 0) return csv.error_at(4, "steps: must be at least 1");
  if (gpus == 0) return csv.error_at(6, "scale_factor: must be at least 1");
  if (steps / model->steps_per_s > static_cast<double>(kMostSeconds))
    return csv.error_at(4, "steps: would take longer than 10^10 seconds");
  Job job = training_job(std::string(file) + "-" + std::to_string(csv.line()), gpus,
                         steps / model->steps_per_s, model->reduced_mb * model->steps_per_s);
  job.arrival_s = std::llround(arrival);
  job.work.used_milli = model->used_milli;
  job.work.gpu_model = kPhillyGpu;
  return job;
}

Result<Job> read_pollux(const CsvReader& csv) {
  CsvRow row(csv);
  if (Status ok = check_job_name(csv, 0); !ok) return ok.error();
  const PolluxApp* const app = find_row(pollux_apps(), csv.field(2));
  if (app == nullptr)
    return csv.error_at(2, "application: '" + std::string(csv.field(2)) +
                               "' is not known; there are " + names_of(pollux_apps()));
  const std::int64_t arrival = row.number(1, kMostSeconds);
  const auto gpus = static_cast<int>(row.number(3, kMostGpusPerJob));
  const auto batch = static_cast<double>(row.number(4, kMostBatch));
  if (row.error()) return *row.error();
  if (gpus == 0) return csv.error_at(3, "num_replicas: must be at least 1");
  if (batch < gpus) return csv.error_at(4, "batch_size: must be at least num_replicas");
  const double step_s = app->step_s + app->sample_s * batch / gpus;
  Job job = training_job(std::string(csv.field(0)), gpus, app->samples / batch * step_s,
                         app->reduced_mb / step_s);
  job.arrival_s = arrival;
  job.work.gpu_model = kPolluxGpu;
  return job;
}

}  // namespace

bool is_philly_trace(std::string_view text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  return std::ranges::count(line, '\t') == 6;
}

bool is_pollux_trace(std::string_view text) { return text.starts_with("name,time,"); }

Result<Trace> parse_philly_trace(std::string_view text, std::string_view name) {
  CsvReader csv(text, name, '\t');
  csv.name_columns(kPhillyColumns);
  Trace trace{std::string(name), {}, {}};
  trace.assumptions = {
      "The trace tells steps: a step takes what Gavel (OSDI 2020) measured on one V100, and each "
      "job "
      "uses the part of a GPU that follows from its speed beside a second one of its kind."};
  for (;;) {
    const Result<bool> more = csv.next();
    if (!more) return more.error();
    if (!*more) break;
    Result<Job> job = read_philly(csv, name.substr(0, name.find('.')));
    if (!job) return job.error();
    trace.jobs.push_back(*std::move(job));
  }
  sort_by_arrival(trace);
  return trace;
}

Result<Trace> parse_pollux_trace(std::string_view text, std::string_view name) {
  CsvReader csv(text, name);
  if (Status ok = csv.expect_header(kPolluxColumns); !ok) return ok.error();
  if (const Result<bool> more = csv.header_continues({}); !more) return more.error();
  Trace trace{std::string(name), {}, {}};
  trace.assumptions = {
      "The trace tells applications and batch sizes: a step takes what Pollux (OSDI 2021) measured "
      "on "
      "one T4, for the epochs of its simulator; batch size and GPUs stay as submitted."};
  std::set<std::string, std::less<>> names;
  for (;;) {
    const Result<bool> more = csv.next();
    if (!more) return more.error();
    if (!*more) break;
    Result<Job> job = read_pollux(csv);
    if (!job) return job.error();
    if (!names.insert(job->request.name).second)
      return csv.error_at(0, "name: '" + job->request.name + "' is there already");
    trace.jobs.push_back(*std::move(job));
  }
  sort_by_arrival(trace);
  return trace;
}

}  // namespace aliquot::replay
