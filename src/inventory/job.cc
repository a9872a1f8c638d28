#include "inventory/job.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <set>

#include "driver_abi/nvml_constants.h"
#include "format/described.h"

namespace aliquot::inventory {

template <typename V>
static void describe(V& v, JobWorker& w) {
  v("rank", w.rank), v("node", w.node), v("pid", w.pid), v("gpu_index", w.gpu_index);
  v("model", w.model), v("step_s", w.step_s), v("busy", w.busy);
  v("sm_mhz", w.sm_mhz), v("sm_max_mhz", w.sm_max_mhz), v("clock_reasons", w.clock_reasons);
  v("temperature_c", w.temperature_c);
  v("pcie_generation", w.pcie_generation), v("pcie_width", w.pcie_width);
  v("nvlinks_up", w.nvlinks_up), v("gpu_cpus", w.gpu_cpus), v("cpus", w.cpus);
  v("others", w.others), v("cores", w.cores), v("waiting", w.waiting);
}

template <typename V>
static void describe(V& v, JobReport& report) {
  v("version", report.version), v("simulated", report.simulated), v("workers", report.workers);
}

namespace {

// Below this a difference is noise.
constexpr double kNoise = 0.05;
// Copies and collectives are a part of a step only: what a link has less of weighs so much.
constexpr double kLinkPart = 0.3;
constexpr double kFarNuma = 1.05;
constexpr double kCrowd = 1.2;

constexpr std::uint64_t kHeat = nvmlClocksThrottleReasonHwThermalSlowdown |
                                nvmlClocksThrottleReasonSwThermalSlowdown |
                                nvmlClocksThrottleReasonHwSlowdown;
constexpr std::uint64_t kPower =
    nvmlClocksThrottleReasonSwPowerCap | nvmlClocksThrottleReasonHwPowerBrakeSlowdown;

std::string percent(double part) { return std::to_string(std::lround(part * 100)) + " %"; }

using Figure = std::function<std::optional<double>(const JobWorker&)>;

template <typename T>
Figure figure(std::optional<T> JobWorker::* member) {
  return [member](const JobWorker& worker) -> std::optional<double> {
    if (!(worker.*member)) return std::nullopt;
    return static_cast<double>(*(worker.*member));
  };
}

// The middle of what the workers other than `of` have; nullopt: nobody else has it.
std::optional<double> usual(const std::vector<JobWorker>& workers, std::size_t of,
                            const Figure& figure) {
  std::vector<double> values;
  for (std::size_t i = 0; i < workers.size(); ++i)
    if (const auto value = figure(workers[i]); value && i != of) values.push_back(*value);
  if (values.empty()) return std::nullopt;
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// "0-3,8" as numbers; what is not understood ends the list.
std::set<unsigned> cpus_of(std::string_view text) {
  std::set<unsigned> cpus;
  while (!text.empty()) {
    unsigned first = 0;
    auto read = std::from_chars(text.data(), text.data() + text.size(), first);
    if (read.ec != std::errc{}) break;
    unsigned last = first;
    if (read.ptr != text.data() + text.size() && *read.ptr == '-')
      read = std::from_chars(read.ptr + 1, text.data() + text.size(), last);
    for (unsigned cpu = first; cpu <= last && cpu < first + 4096; ++cpu) cpus.insert(cpu);
    text.remove_prefix(static_cast<std::size_t>(read.ptr - text.data()));
    if (text.starts_with(',')) text.remove_prefix(1);
  }
  return cpus;
}

JobFinding finding_of(const std::vector<JobWorker>& workers, std::size_t worker,
                      std::string_view code, std::string evidence, double factor) {
  const auto kinds = finding_kinds();
  const auto kind = std::ranges::find(kinds, code, &FindingKind::code);
  return {worker, {&*kind, worker_name(workers[worker]), std::move(evidence)}, factor};
}

class Comparison {
 public:
  explicit Comparison(const std::vector<JobWorker>& workers) : workers_(workers) {}

  std::vector<JobFinding> take() {
    for (std::size_t i = 0; i < workers_.size(); ++i) {
      compare_clocks(i);
      compare_links(i);
      compare_shares(i);
      compare_host(i);
    }
    return std::move(findings_);
  }

 private:
  void add(std::size_t worker, std::string_view code, std::string evidence, double factor) {
    findings_.push_back(finding_of(workers_, worker, code, std::move(evidence), factor));
  }

  struct Lack {
    double own;
    double factor;  // how much more the others have
  };
  // Where that is more than noise; else nullopt.
  std::optional<Lack> lack(std::size_t of, const Figure& figure) const {
    const auto own = figure(workers_[of]);
    const auto others = usual(workers_, of, figure);
    if (!own || !others || *own <= 0 || *others <= *own * (1 + kNoise)) return std::nullopt;
    return Lack{*own, *others / *own};
  }

  void compare_clocks(std::size_t of) {
    const JobWorker& worker = workers_[of];
    const auto model_of = [](const JobWorker& one) { return one.model; };
    const auto alike = std::ranges::count(workers_, worker.model, model_of);
    if (!worker.model.empty() && alike * 2 < std::ssize(workers_))
      add(of, "JOB_GPU_MODEL", "a " + worker.model + ", unlike most", 1);
    const auto clock = lack(of, figure(&JobWorker::sm_mhz));
    if (!clock) return;
    const std::uint64_t reasons = worker.clock_reasons.value_or(0);
    const char* code = (reasons & kHeat) != 0    ? "JOB_CLOCKS_HEAT"
                       : (reasons & kPower) != 0 ? "JOB_CLOCKS_POWER"
                                                 : "JOB_CLOCKS_LOW";
    std::string evidence = std::to_string(std::lround(clock->own)) + " MHz, others " +
                           std::to_string(std::lround(clock->factor * clock->own)) + " MHz";
    if (worker.temperature_c) evidence += ", at " + std::to_string(*worker.temperature_c) + " C";
    add(of, code, evidence, clock->factor);
  }

  void compare_links(std::size_t of) {
    const JobWorker& worker = workers_[of];
    const auto rate = [](const JobWorker& one) -> std::optional<double> {
      if (!one.pcie_generation || !one.pcie_width) return std::nullopt;
      return std::exp2(*one.pcie_generation) * *one.pcie_width;
    };
    if (const auto slow = lack(of, rate); slow && worker.pcie_generation && worker.pcie_width)
      add(of, "JOB_PCIE_SLOW",
          "PCIe " + std::to_string(*worker.pcie_generation) + ".0 x" +
              std::to_string(*worker.pcie_width) + ", others " + percent(slow->factor) + " of that",
          1 + kLinkPart * (slow->factor - 1));
    const auto links = figure(&JobWorker::nvlinks_up);
    const auto others = usual(workers_, of, links);
    if (others && worker.nvlinks_up && *worker.nvlinks_up < *others)
      add(of, "JOB_NVLINKS",
          std::to_string(*worker.nvlinks_up) + " NVLinks are up, others have " +
              std::to_string(std::lround(*others)),
          1 + kLinkPart * (*others / std::max(1u, *worker.nvlinks_up) - 1));
  }

  void compare_shares(std::size_t of) {
    const JobWorker& worker = workers_[of];
    if (const auto small = lack(of, figure(&JobWorker::cores)))
      add(of, "JOB_SHARE",
          percent(small->own) + " of its GPU, others " + percent(small->factor * small->own),
          small->factor);
    const auto waiting = usual(workers_, of, figure(&JobWorker::waiting));
    if (waiting && worker.waiting && *worker.waiting > *waiting + kNoise)
      add(of, "JOB_WAITS",
          "its launches wait " + percent(*worker.waiting) + " of the time, others' " +
              percent(*waiting),
          (1 - std::min(*waiting, 0.99)) / (1 - std::min(*worker.waiting, 0.99)));
    const auto others = usual(workers_, of, figure(&JobWorker::others));
    if (others && worker.others && *worker.others > *others)
      add(of, "JOB_CROWDED",
          std::to_string(*worker.others) + " other processes use its GPU, others' " +
              std::to_string(std::lround(*others)),
          kCrowd);
  }

  void compare_host(std::size_t of) {
    const JobWorker& worker = workers_[of];
    if (const auto idle = lack(of, figure(&JobWorker::busy)))
      add(of, "JOB_STARVED",
          "a kernel runs " + percent(idle->own) + " of the time, others' " +
              percent(idle->factor * idle->own),
          idle->factor);
    const auto near = cpus_of(worker.gpu_cpus);
    const auto own = cpus_of(worker.cpus);
    const bool far = !near.empty() && !own.empty() &&
                     std::ranges::none_of(own, [&](unsigned cpu) { return near.contains(cpu); });
    if (far)
      add(of, "JOB_NUMA_FAR",
          "runs on CPUs " + worker.cpus + ", its GPU is near " + worker.gpu_cpus, kFarNuma);
  }

  const std::vector<JobWorker>& workers_;
  std::vector<JobFinding> findings_;
};

// The slowest by its own step time, when most tell theirs and it is slower than noise.
void judge_steps(const std::vector<JobWorker>& workers, JobAnswer& answer) {
  const auto steps = figure(&JobWorker::step_s);
  for (std::size_t i = 0; i < workers.size(); ++i) {
    const auto others = usual(workers, i, steps);
    const std::optional<double> own = workers[i].step_s;
    if (!own || !others || *others <= 0) continue;
    answer.measured = true;
    const double factor = *own / *others;
    if (factor < 1 + kNoise || factor <= answer.factor) continue;
    answer.slow = i;
    answer.factor = factor;
  }
}

void judge_causes(const std::vector<JobWorker>& workers, JobAnswer& answer) {
  std::vector<double> product(workers.size(), 1);
  for (const JobFinding& one : answer.findings) product[one.worker] *= one.factor;
  for (std::size_t i = 0; i < product.size(); ++i)
    if (product[i] > answer.factor) {
      answer.slow = i;
      answer.factor = product[i];
    }
}

}  // namespace

std::string worker_name(const JobWorker& worker) {
  const std::string who = worker.rank ? "rank " + std::to_string(*worker.rank)
                                      : "process " + std::to_string(worker.pid);
  return who + " (" + (worker.node.empty() ? "" : worker.node + ", ") + "GPU " +
         std::to_string(worker.gpu_index) + ")";
}

JobAnswer diagnose_job(const std::vector<JobWorker>& workers) {
  JobAnswer answer;
  answer.findings = Comparison(workers).take();
  judge_steps(workers, answer);
  if (!answer.measured) judge_causes(workers, answer);
  const auto of_slow = [&](const JobFinding& one) { return answer.slow == one.worker; };
  if (answer.slow && std::ranges::none_of(answer.findings, of_slow))
    answer.findings.push_back(
        finding_of(workers, *answer.slow, "JOB_SLOW",
                   "its steps take " + percent(answer.factor) + " of the others' time", 1));
  std::ranges::stable_sort(answer.findings, [&](const JobFinding& a, const JobFinding& b) {
    if (of_slow(a) != of_slow(b)) return of_slow(a);
    return a.factor > b.factor;
  });
  return answer;
}

std::string job_report_text(const JobReport& report) {
  return format::write_described(report).dump(2) + "\n";
}

Result<JobReport> parse_job_report(std::string_view text, const std::string& where) {
  const auto json = format::parse_json(text, where);
  if (!json) return json.error();
  JobReport report;
  if (const Status read = format::read_described(*json, where, report); !read) return read.error();
  if (report.version != 1)
    return Error{Errc::kInvalid,
                 where + ": version " + std::to_string(report.version) + " is not known, only 1"};
  return report;
}

}  // namespace aliquot::inventory
