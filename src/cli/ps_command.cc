#include "cli/ps_command.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <ostream>

#include "broker/unaccounted.h"
#include "cli/compute_view.h"
#include "cli/surroundings.h"
#include "cli/table.h"
#include "format/json.h"
#include "model/quantity.h"

namespace aliquot::cli {
namespace {

using broker::LeaseRow;
using broker::UsageRow;
using format::Json;

std::string_view state_text(wire::LeaseState state) {
  switch (state) {
    case wire::LeaseState::kLive:
      return "live";
    case wire::LeaseState::kEnded:
      return "ended";
    case wire::LeaseState::kPoisoned:
      return "poisoned";
  }
  return "unknown";
}

constexpr std::string_view kKindNames[] = {"linear", "pool",   "vmm",    "array",
                                           "graph",  "module", "context"};

Json usage_json(const UsageRow& usage) {
  Json kinds = Json::object();
  for (std::size_t i = 0; i < usage.kind_bytes.size() && i < std::size(kKindNames); ++i)
    kinds.set(kKindNames[i], usage.kind_bytes[i]);
  return Json::object()
      .set("index", std::int64_t{usage.index})
      .set("uuid", usage.uuid)
      .set("limit_bytes", usage.limit_bytes)
      .set("used_bytes", usage.used_bytes)
      .set("unaccounted_bytes", usage.unaccounted_bytes)
      .set("held_back_bytes", usage.held_back_bytes)
      .set("bytes_by_kind", kinds)
      .set("refusals", usage.refusals)
      .set("compute", compute_json(usage));
}

Json process_json(const broker::ProcessRow& process) {
  Json held = Json::array();
  for (const std::uint64_t bytes : process.held_bytes) held.append(bytes);
  return Json::object().set("pid", std::int64_t{process.pid}).set("held_bytes", held);
}

Json row_json(const LeaseRow& lease) {
  Json gpus = Json::array();
  for (const UsageRow& usage : lease.gpus) gpus.append(usage_json(usage));
  Json processes = Json::array();
  for (const broker::ProcessRow& process : lease.rows) processes.append(process_json(process));
  return Json::object()
      .set("name", lease.name)
      .set("driver", lease.driver)
      .set("simulated", lease.driver.starts_with("sim:"))
      .set("state", state_text(lease.state))
      .set("guarded", lease.guarded)
      .set("commands", std::int64_t{lease.runners})
      .set("attached", std::int64_t{lease.processes})
      .set("anomalies", lease.anomalies)
      .set("refused_attaches", lease.refused_attaches)
      .set("held_off", lease.held_off)
      .set("observed", lease.observed)
      .set("would_refuse", lease.would_refuse)
      .set("gpus", gpus)
      .set("processes", processes);
}

Status show(bool json, Invocation& invocation) {
  std::vector<LeaseRow> leases;
  std::vector<broker::BypassRow> bypasses;
  std::vector<broker::NoteRow> notes;
  // No broker means that nothing was granted: that is an answer, not an error.
  for (broker::Client& broker : running_brokers()) {
    auto rows = broker.list();
    if (!rows) return rows.error();
    std::ranges::move(*rows, std::back_inserter(leases));
    auto found = broker.bypasses();
    if (!found) return found.error();
    std::ranges::move(*found, std::back_inserter(bypasses));
    auto said = broker.notes();
    if (!said) return said.error();
    std::ranges::move(*said, std::back_inserter(notes));
  }
  if (json) {
    invocation.out << lease_json(leases, bypasses, notes) << '\n';
    return {};
  }
  invocation.out << (leases.empty() ? "no lease\n"
                                    : lease_table(leases) + '\n' + compute_table(leases));
  invocation.out << unaccounted_text(leases);
  for (const broker::BypassRow& row : bypasses)
    invocation.out << "process " << row.pid << " of lease " << row.lease << " uses "
                   << model::memory_text(row.bytes) << " of GPU " << row.index
                   << " without having attached\n";
  invocation.out << notes_text(notes);
  return {};
}

}  // namespace

std::string lease_table(const std::vector<LeaseRow>& leases) {
  const auto right = Table::Align::kRight;
  Table table({{"LEASE"},
               {"MACHINE"},
               {"GPU", right},
               {"USED", right},
               {"LIMIT", right},
               {"REFUSED", right},
               {"PROCS", right},
               {"STATE"}});
  for (const LeaseRow& lease : leases)
    for (const UsageRow& usage : lease.gpus)
      table.add({lease.name, lease.driver, std::to_string(usage.index),
                 model::memory_text(usage.used_bytes), model::memory_text(usage.limit_bytes),
                 std::to_string(usage.refusals), std::to_string(lease.processes),
                 std::string(state_text(lease.state))});
  return table.text();
}

std::string unaccounted_text(const std::vector<LeaseRow>& leases) {
  std::string text;
  for (const LeaseRow& lease : leases)
    for (const UsageRow& usage : lease.gpus) {
      if (usage.unaccounted_bytes <= 0) continue;
      const auto beyond = static_cast<std::uint64_t>(usage.unaccounted_bytes);
      if (beyond <= broker::ordinary_excess(usage.used_bytes, lease.processes)) continue;
      text += "lease " + lease.name + " holds " + model::memory_text(beyond) + " of GPU " +
              std::to_string(usage.index) + " beyond what is charged to it";
      if (usage.held_back_bytes != 0)
        text += "; it may take " + model::memory_text(usage.held_back_bytes) + " less";
      text += '\n';
    }
  return text;
}

std::string notes_text(const std::vector<broker::NoteRow>& notes) {
  std::string text;
  for (const broker::NoteRow& note : notes) text += note.subject + ' ' + note.text + '\n';
  return text;
}

std::string lease_json(const std::vector<LeaseRow>& leases,
                       const std::vector<broker::BypassRow>& bypasses,
                       const std::vector<broker::NoteRow>& notes, int indent) {
  Json rows = Json::array();
  for (const LeaseRow& lease : leases) rows.append(row_json(lease));
  Json past = Json::array();
  for (const broker::BypassRow& row : bypasses)
    past.append(Json::object()
                    .set("lease", row.lease)
                    .set("pid", std::int64_t{row.pid})
                    .set("gpu", std::int64_t{row.index})
                    .set("bytes", row.bytes));
  Json said = Json::array();
  for (const broker::NoteRow& note : notes)
    said.append(
        Json::object().set("kind", note.kind).set("subject", note.subject).set("text", note.text));
  return Json::object().set("leases", rows).set("bypasses", past).set("notes", said).dump(indent);
}

void add_ps_command(CLI::App& app, Invocation& invocation) {
  CLI::App* ps = app.add_subcommand("ps", "Show the leases and what they use");
  auto json = std::make_shared<bool>(false);
  ps->add_flag("--json", *json, "As JSON");
  ps->callback([json, &invocation] {
    if (const Status shown = show(*json, invocation); !shown) fail(invocation, "ps", shown.error());
  });
}

}  // namespace aliquot::cli
