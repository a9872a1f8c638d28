#include "cli/doctor_command.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>
#include <ostream>

#include "cli/job_command.h"
#include "cli/surroundings.h"
#include "common/files.h"
#include "format/json.h"

namespace aliquot::cli {
namespace {

using format::Json;
using inventory::Finding;
using inventory::Severity;

struct DoctorOptions {
  std::string sim;
  int pid = 0;
  bool json = false;
  bool codes = false;
  bool job_wanted = false;
  JobOptions job;
};

// "NAME=VALUE" after "NAME=VALUE", parted by zero bytes, as /proc/PID/environ has it.
std::map<std::string, std::string> variables_of(std::string_view text) {
  std::map<std::string, std::string> variables;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\0'), text.size());
    const std::string_view row = text.substr(0, end);
    const std::size_t equals = row.find('=');
    if (equals != std::string_view::npos)
      variables.emplace(row.substr(0, equals), row.substr(equals + 1));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return variables;
}

std::map<std::string, std::string> own_variables() {
  std::map<std::string, std::string> variables;
  for (char** row = environ; *row != nullptr; ++row)
    variables.merge(variables_of(std::string_view(*row)));
  return variables;
}

// What the broker, where one runs, says of the GPUs of this driver.
std::vector<inventory::SharedGpu> shares_of(const std::string& driver) {
  std::vector<inventory::SharedGpu> shares;
  auto broker = running_broker();
  if (!broker) return shares;
  const auto rooms = broker->room(driver);
  if (!rooms) return shares;
  for (const broker::RoomRow& room : *rooms) shares.push_back({room.uuid, room.promised_bytes, 0});
  if (const auto bypasses = broker->bypasses())
    for (const broker::BypassRow& bypass : *bypasses)
      if (bypass.index < shares.size()) ++shares[bypass.index].bypassing_processes;
  return shares;
}

Result<int> examine(const DoctorOptions& options, std::ostream& out) {
  if (inside_lease())
    return Error{Errc::kDenied,
                 "inside a share nothing of the machine can be seen: leave it first"};
  const auto driver = inventory::choose_driver(driver_question(options.sim));
  if (!driver) return driver.error();
  auto variables = own_variables();
  auto paths = inventory::paths_of(*driver);
  if (options.pid != 0) {
    const std::filesystem::path process = "/proc/" + std::to_string(options.pid);
    const auto text = read_file(process / "environ", 1u << 20);
    if (!text) return text.error();
    variables = variables_of(*text);
    // The job's own view: its image, its /dev/shm, its device nodes.
    paths.root = process / "root";
    paths.shm = paths.root / "dev/shm";
    paths.dev = paths.root / "dev";
  }
  auto view = inventory::look(*driver, paths, std::move(variables));
  view.shares = shares_of(driver->name);
  const auto findings = inventory::diagnose(view);
  if (options.json)
    out << doctor_json(findings, driver->title(), driver->simulated()) << '\n';
  else
    out << doctor_text(findings, driver->title());
  const bool errors = std::ranges::any_of(
      findings, [](const Finding& f) { return f.kind->severity == Severity::kError; });
  return errors ? 1 : 0;
}

void add_job_options(CLI::App& doctor, DoctorOptions& options) {
  auto* job = doctor
                  .add_flag("--job", options.job_wanted,
                            "Name the slow worker of the job that runs here, or in the reports")
                  ->group("Distributed jobs");
  const auto of_job = [job](CLI::Option* option) { option->needs(job)->group("Distributed jobs"); };
  of_job(doctor.add_option("reports", options.job.files, "Reports of the job's nodes")
             ->type_name("FILE"));
  of_job(doctor.add_flag("--report", options.job.report,
                         "Print what is seen here, to be compared with other nodes"));
  of_job(doctor
             .add_option("--step", options.job.steps,
                         "How long a step of each takes, without the wait for others")
             ->type_name("RANK=SECONDS")
             ->delimiter(','));
  of_job(doctor.add_option("--seconds", options.job.seconds, "Look for so long")
             ->check(CLI::Range(0.5, 600.0))
             ->capture_default_str());
}

std::string_view word(Severity severity) {
  return severity == Severity::kError ? "error" : "warning";
}

}  // namespace

std::string doctor_text(const std::vector<Finding>& findings, const std::string& source) {
  std::string text = source + ": ";
  if (findings.empty()) return text + "nothing found\n";
  text += std::to_string(findings.size()) + (findings.size() == 1 ? " finding\n" : " findings\n");
  for (const Finding& finding : findings) text += finding_text(finding);
  return text;
}

std::string finding_text(const Finding& finding) {
  std::string text = "\n" + std::string(word(finding.kind->severity)) + " " +
                     std::string(finding.kind->code) + ": ";
  if (!finding.subject.empty()) text += finding.subject + ": ";
  return text + std::string(finding.kind->what) + "\n  seen:   " + finding.evidence +
         "\n  remedy: " + std::string(finding.kind->remedy) + "\n";
}

Json finding_json(const Finding& finding) {
  return Json::object()
      .set("code", std::string(finding.kind->code))
      .set("severity", std::string(word(finding.kind->severity)))
      .set("subject", finding.subject)
      .set("finding", std::string(finding.kind->what))
      .set("evidence", finding.evidence)
      .set("remedy", std::string(finding.kind->remedy));
}

std::string doctor_json(const std::vector<Finding>& findings, const std::string& source,
                        bool simulated) {
  Json list = Json::array();
  for (const Finding& finding : findings) list.append(finding_json(finding));
  return Json::object()
      .set("source", source)
      .set("simulated", simulated)
      .set("findings", std::move(list))
      .dump(2);
}

void add_doctor_command(CLI::App& app, Invocation& invocation) {
  CLI::App* doctor = app.add_subcommand("doctor", "Find what is wrong with this machine, and why");
  auto options = std::make_shared<DoctorOptions>();
  doctor->add_option("--sim", options->sim, "Running simulated machine");
  doctor
      ->add_option("--pid", options->pid,
                   "Look with the eyes of this process: its image, "
                   "its environment, its /dev")
      ->check(CLI::PositiveNumber);
  doctor->add_flag("--json", options->json, "As JSON");
  doctor->add_flag("--codes", options->codes, "List what can be found, by its code");
  add_job_options(*doctor, *options);
  doctor->callback([options, &invocation] {
    if (options->codes) {
      for (const inventory::FindingKind& kind : inventory::finding_kinds())
        invocation.out << kind.code << '\t' << word(kind.severity) << '\t' << kind.what << '\t'
                       << kind.remedy << '\n';
      return;
    }
    if (options->job_wanted) {
      options->job.sim = options->sim;
      options->job.json = options->json;
      const auto status = examine_job(options->job, invocation.out);
      if (!status) return fail(invocation, "doctor", status.error());
      invocation.status = *status;
      return;
    }
    const auto status = examine(*options, invocation.out);
    if (!status) return fail(invocation, "doctor", status.error());
    invocation.status = *status;
  });
}

}  // namespace aliquot::cli
