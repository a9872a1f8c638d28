#include "cli/compute_view.h"

#include <fmt/format.h>

#include "cli/compute_options.h"
#include "cli/table.h"
#include "model/quantity.h"

namespace aliquot::cli {
namespace {

using broker::ComputeRow;
using broker::ComputeState;
using format::Json;

// "30%", "30%=" where that is the most, "-" without a guarantee.
std::string cores_cell(const broker::UsageRow& usage) {
  if (usage.cores == 0) return "-";
  return model::cores_text(usage.cores) + (usage.compute.capped ? "=" : "");
}

std::string count_text(std::uint64_t count) {
  if (count < 100'000) return std::to_string(count);
  if (count < 100'000'000) return fmt::format("{}k", count / 1000);
  return fmt::format("{}M", count / 1'000'000);
}

}  // namespace

std::string_view compute_state_text(ComputeState state) {
  switch (state) {
    case ComputeState::kIdle:
      return "idle";
    case ComputeState::kWaiting:
      return "waiting";
    case ComputeState::kHolding:
      return "running";
    case ComputeState::kBanned:
      return "banned";
    case ComputeState::kPaused:
      return "paused by online";
    case ComputeState::kCapped:
      return "at its cap";
  }
  return "unknown";
}

std::string compute_remark(const ComputeRow& row) {
  if (row.state == ComputeState::kBanned) return "banned " + time_text(row.banned_for_ns);
  if (row.offender) return "bypasses the gate";
  return std::string(compute_state_text(row.state));
}

std::string compute_table(const std::vector<broker::LeaseRow>& leases) {
  const auto right = Table::Align::kRight;
  Table table({{"LEASE"},
               {"GPU", right},
               {"CORES", right},
               {"POLICY"},
               {"CLASS"},
               {"BUSY", right},
               {"WAITED", right},
               {"LAUNCHES", right},
               {"COMPUTE"}});
  for (const broker::LeaseRow& lease : leases)
    for (const broker::UsageRow& usage : lease.gpus) {
      const ComputeRow& row = usage.compute;
      table.add({lease.name, std::to_string(usage.index), cores_cell(usage),
                 std::string(policy_text(row.policy)), std::string(class_text(row.share_class)),
                 fmt::format("{}%", (row.busy + 50) / 100), time_text(usage.waiting_ns),
                 count_text(usage.launches), compute_remark(row)});
    }
  return table.text();
}

Json compute_json(const broker::UsageRow& usage) {
  const ComputeRow& row = usage.compute;
  return Json::object()
      .set("policy", policy_text(row.policy))
      .set("cores_percent", usage.cores / 100.0)
      .set("weight", std::uint64_t{row.weight})
      .set("class", class_text(row.share_class))
      .set("priority", std::uint64_t{row.priority})
      .set("capped", row.capped)
      .set("share_percent", row.share / 100.0)
      .set("busy_percent", row.busy / 100.0)
      .set("state", compute_state_text(row.state))
      .set("banned_for_ns", row.banned_for_ns)
      .set("launches", usage.launches)
      .set("waiting_ns", usage.waiting_ns)
      .set("charged_ns", row.charged_ns)
      .set("forgiven_ns", row.forgiven_ns)
      .set("windows", row.windows)
      .set("unused_grants", row.unused_grants)
      .set("undrained_turns", row.undrained_turns)
      .set("false_reports", row.false_reports)
      .set("longest_kernel_ns", row.longest_kernel_ns)
      .set("gate_refusals", row.gate_refusals)
      .set("bypasses", row.bypasses)
      .set("bypass_ns", row.bypass_ns)
      .set("offender", row.offender);
}

}  // namespace aliquot::cli
