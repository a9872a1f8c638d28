#include "inventory/job_look.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <thread>

#include "common/files.h"
#include "driver_abi/nvml_constants.h"
#include "inventory/bounded_child.h"
#include "inventory/nvml.h"

namespace aliquot::inventory {
namespace {

constexpr Nanoseconds kSampleEvery = kSecond / 2;
constexpr Nanoseconds kDriverLimit = 5 * kSecond;

// In the order in which launchers set them.
constexpr std::array<std::string_view, 5> kRankVariables{"RANK", "OMPI_COMM_WORLD_RANK",
                                                         "SLURM_PROCID", "PMI_RANK", "PMIX_RANK"};

struct Sampled {
  NvmlGpu gpu;
  std::vector<NvmlState> samples;
  unsigned nvlinks_up = 0;
};

// A GPU that does not answer has no samples, and so no workers.
std::vector<Sampled> sample(Nvml& nvml, Nanoseconds duration) {
  std::vector<Sampled> all;
  const auto gpus = nvml.gpus();
  if (!gpus) return all;
  for (const NvmlGpu& gpu : *gpus) all.push_back({gpu, {}, 0});
  const MonotonicClock clock;
  const Nanoseconds end = clock.now() + duration;
  for (bool last = false; !last;) {
    last = clock.now() >= end;
    for (unsigned i = 0; i < all.size(); ++i)
      if (auto state = nvml.state(i)) all[i].samples.push_back(*std::move(state));
    if (!last) std::this_thread::sleep_for(std::chrono::nanoseconds(kSampleEvery));
  }
  for (unsigned i = 0; i < all.size(); ++i)
    if (const auto links = nvml.nvlinks(i))
      all[i].nvlinks_up =
          static_cast<unsigned>(std::ranges::count(*links, true, &NvmlNvlink::active));
  return all;
}

// Of "/proc/PID/status".
std::string allowed_cpus(const std::filesystem::path& process) {
  const auto text = read_file(process / "status", 64 << 10);
  constexpr std::string_view kKey = "Cpus_allowed_list:\t";
  const std::size_t at = text ? text->find(kKey) : std::string::npos;
  if (at == std::string::npos) return "";
  const std::size_t from = at + kKey.size();
  return text->substr(from, text->find('\n', from) - from);
}

bool wanted(const JobQuestion& question, std::int64_t pid) {
  return question.pids.empty() || std::ranges::find(question.pids, pid) != question.pids.end();
}

std::vector<JobWorker> workers_of(const JobQuestion& question, const std::vector<Sampled>& all) {
  std::vector<JobWorker> workers;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].samples.empty()) continue;
    const auto& processes = all[i].samples.back().processes;
    for (const NvmlProcess& process : processes) {
      if (!wanted(question, process.pid)) continue;
      JobWorker worker = worker_of(all[i].gpu, all[i].samples);
      const auto directory = question.proc / std::to_string(process.pid);
      const auto environment = read_file(directory / "environ", 1u << 20);
      worker.node = question.node;
      worker.pid = process.pid;
      worker.gpu_index = static_cast<unsigned>(i);
      if (environment) worker.rank = rank_of(*environment);
      worker.cpus = allowed_cpus(directory);
      worker.others = static_cast<unsigned>(processes.size() - 1);
      if (all[i].nvlinks_up > 0) worker.nvlinks_up = all[i].nvlinks_up;
      workers.push_back(std::move(worker));
    }
  }
  // Processes without a rank beside such with one are no workers of the job.
  const bool ranked =
      question.pids.empty() &&
      std::ranges::any_of(workers, [](const JobWorker& one) { return one.rank.has_value(); });
  if (ranked) std::erase_if(workers, [](const JobWorker& one) { return !one.rank; });
  std::ranges::stable_sort(workers, {}, [](const JobWorker& one) { return one.rank; });
  return workers;
}

}  // namespace

std::optional<unsigned> rank_of(std::string_view environment) {
  for (const std::string_view name : kRankVariables)
    for (std::size_t at = 0; at < environment.size();) {
      const std::size_t end = std::min(environment.find('\0', at), environment.size());
      const std::string_view row = environment.substr(at, end - at);
      at = end + 1;
      if (!row.starts_with(name) || !row.substr(name.size()).starts_with('=')) continue;
      const std::string_view value = row.substr(name.size() + 1);
      unsigned rank = 0;
      const auto read = std::from_chars(value.data(), value.data() + value.size(), rank);
      if (read.ec == std::errc{} && read.ptr == value.data() + value.size()) return rank;
    }
  return std::nullopt;
}

JobWorker worker_of(const NvmlGpu& gpu, const std::vector<NvmlState>& samples) {
  JobWorker worker;
  worker.model = gpu.name;
  worker.gpu_cpus = gpu.cpus;
  double busy = 0;
  unsigned known = 0;
  for (const NvmlState& state : samples) {
    if (state.gpu_percent) busy += *state.gpu_percent / 100.0, ++known;
    // A clock that a GPU has while it is idle says nothing.
    const bool idle = (state.clock_reasons.value_or(0) & nvmlClocksThrottleReasonGpuIdle) != 0 &&
                      state.gpu_percent.value_or(0) == 0;
    if (state.sm_mhz && !idle)
      worker.sm_mhz = std::min(worker.sm_mhz.value_or(*state.sm_mhz), *state.sm_mhz);
    if (state.clock_reasons)
      worker.clock_reasons = worker.clock_reasons.value_or(0) | *state.clock_reasons;
    if (state.temperature_c)
      worker.temperature_c = std::max(worker.temperature_c.value_or(0), *state.temperature_c);
    // A link that sleeps is slow: the best that was seen counts.
    if (state.pcie_generation)
      worker.pcie_generation = std::max(worker.pcie_generation.value_or(0), *state.pcie_generation);
    if (state.pcie_width)
      worker.pcie_width = std::max(worker.pcie_width.value_or(0), *state.pcie_width);
    if (state.sm_max_mhz) worker.sm_max_mhz = state.sm_max_mhz;
  }
  if (known > 0) worker.busy = busy / known;
  return worker;
}

Result<std::vector<JobWorker>> look_at_job(const JobQuestion& question) {
  const MonotonicClock clock;
  auto child = BoundedChild::begin([&] {
    JobReport report;
    const auto nvml = open_nvml(question.libnvidia_ml);
    if (!nvml) return "!" + nvml.error().message;
    report.workers = workers_of(question, sample(**nvml, question.duration));
    return job_report_text(report);
  });
  if (!child) return child.error();
  const auto text = child->wait(clock.now() + question.duration + kDriverLimit);
  if (!text) return text.error();
  if (text->starts_with('!')) return Error{Errc::kUnavailable, text->substr(1)};
  auto report = parse_job_report(*text, "samples");
  if (!report) return report.error();
  return std::move(report->workers);
}

}  // namespace aliquot::inventory
