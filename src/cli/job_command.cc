#include "cli/job_command.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <ostream>

#include "cli/doctor_command.h"
#include "cli/surroundings.h"
#include "common/files.h"
#include "inventory/job_look.h"

namespace aliquot::cli {
namespace {

using format::Json;
using inventory::JobAnswer;
using inventory::JobReport;
using inventory::JobWorker;

constexpr double kWhole = 10'000;  // 1/100 %

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

std::vector<broker::LeaseRow> leases() {
  std::vector<broker::LeaseRow> all;
  for (broker::Client& client : running_brokers())
    if (auto rows = client.list()) std::ranges::move(*rows, std::back_inserter(all));
  return all;
}

const broker::UsageRow* usage_of(const std::vector<broker::LeaseRow>& leases,
                                 const JobWorker& worker) {
  for (const broker::LeaseRow& lease : leases) {
    if (std::ranges::find(lease.rows, worker.pid, &broker::ProcessRow::pid) == lease.rows.end())
      continue;
    const auto usage = std::ranges::find(lease.gpus, worker.gpu_index, &broker::UsageRow::index);
    if (usage != lease.gpus.end()) return &*usage;
  }
  return nullptr;
}

Result<JobReport> look_here(const JobOptions& options) {
  const auto driver = inventory::choose_driver(driver_question(options.sim));
  if (!driver) return driver.error();
  inventory::JobQuestion question;
  question.libnvidia_ml = driver->libnvidia_ml;
  question.duration = static_cast<Nanoseconds>(options.seconds * kSecond);
  question.node = host_name();
  const auto before = leases();
  auto workers = inventory::look_at_job(question);
  if (!workers) return workers.error();
  add_shares(before, leases(), options.seconds, *workers);
  return JobReport{1, driver->simulated(), *std::move(workers)};
}

Result<JobReport> read_reports(const std::vector<std::string>& files) {
  JobReport all;
  for (const std::string& file : files) {
    const auto text = read_file(file, 16u << 20);
    if (!text) return text.error();
    const auto report = inventory::parse_job_report(*text, file);
    if (!report) return report.error();
    all.simulated |= report->simulated;
    all.workers.insert(all.workers.end(), report->workers.begin(), report->workers.end());
  }
  return all;
}

std::string how(const JobAnswer& answer) {
  const std::string more = std::to_string(std::lround((answer.factor - 1) * 100)) + " %";
  return answer.measured ? "its steps take " + more + " longer than the others'"
                         : "what it lacks can make it about " + more + " slower";
}

}  // namespace

Status add_steps(const std::vector<std::string>& steps, std::vector<JobWorker>& workers) {
  for (const std::string& step : steps) {
    const std::size_t equals = step.find('=');
    unsigned rank = 0;
    double seconds = 0;
    const char* end = step.data() + step.size();
    const bool good =
        equals != std::string::npos && equals > 0 &&
        std::from_chars(step.data(), step.data() + equals, rank).ptr == step.data() + equals &&
        std::from_chars(step.data() + equals + 1, end, seconds).ptr == end && seconds > 0;
    if (!good)
      return Error{Errc::kInvalid, "step \"" + step + "\": expected RANK=SECONDS, as 3=0.52"};
    bool found = false;
    for (JobWorker& worker : workers)
      if (worker.rank == rank) worker.step_s = seconds, found = true;
    if (!found)
      return Error{Errc::kNotFound, "step \"" + step +
                                        "\": no worker has this rank; give the "
                                        "reports of all nodes"};
  }
  return {};
}

void add_shares(const std::vector<broker::LeaseRow>& before,
                const std::vector<broker::LeaseRow>& after, double seconds,
                std::vector<JobWorker>& workers) {
  for (JobWorker& worker : workers) {
    const broker::UsageRow* now = usage_of(after, worker);
    if (now == nullptr) continue;
    if (now->cores > 0) worker.cores = now->cores / kWhole;
    const broker::UsageRow* then = usage_of(before, worker);
    if (then == nullptr || then->waiting_ns > now->waiting_ns || seconds <= 0) continue;
    const double waited = static_cast<double>(now->waiting_ns - then->waiting_ns) * 1e-9 / seconds;
    worker.waiting = std::min(1.0, waited);
  }
}

std::string job_text(const std::vector<JobWorker>& workers, const JobAnswer& answer,
                     bool simulated) {
  std::string text =
      std::to_string(workers.size()) + " workers" + (simulated ? " (simulated)" : "") + ": ";
  text += answer.slow ? inventory::worker_name(workers[*answer.slow]) + " is slow: " + how(answer)
                      : "none stands out";
  text += "\n";
  for (const inventory::JobFinding& one : answer.findings) text += finding_text(one.finding);
  return text;
}

std::string job_json(const std::vector<JobWorker>& workers, const JobAnswer& answer,
                     bool simulated) {
  Json list = Json::array();
  for (const inventory::JobFinding& one : answer.findings)
    list.append(finding_json(one.finding).set("factor", one.factor));
  Json json = Json::object()
                  .set("simulated", simulated)
                  .set("workers", static_cast<std::uint64_t>(workers.size()))
                  .set("measured", answer.measured);
  if (answer.slow) {
    const JobWorker& slow = workers[*answer.slow];
    Json named = Json::object().set("worker", inventory::worker_name(slow));
    if (slow.rank) named.set("rank", *slow.rank);
    json.set("slow", named.set("node", slow.node)
                         .set("gpu", slow.gpu_index)
                         .set("pid", slow.pid)
                         .set("factor", answer.factor));
  }
  return json.set("findings", std::move(list)).dump(2) + "\n";
}

Result<int> examine_job(const JobOptions& options, std::ostream& out) {
  if (options.files.empty() && inside_lease())
    return Error{Errc::kDenied,
                 "inside a share other workers cannot be seen: look from outside of it"};
  auto report = options.files.empty() ? look_here(options) : read_reports(options.files);
  if (!report) return report.error();
  if (const Status added = add_steps(options.steps, report->workers); !added) return added.error();
  if (options.report) {
    out << inventory::job_report_text(*report);
    return 0;
  }
  if (report->workers.empty())
    return Error{Errc::kNotFound, "no process uses a GPU here: start it while the job runs"};
  const JobAnswer answer = inventory::diagnose_job(report->workers);
  out << (options.json ? job_json(report->workers, answer, report->simulated)
                       : job_text(report->workers, answer, report->simulated));
  return answer.slow ? 1 : 0;
}

}  // namespace aliquot::cli
