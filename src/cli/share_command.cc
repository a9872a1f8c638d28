#include "cli/share_command.h"

#include <memory>
#include <ostream>

#include "cli/compute_options.h"
#include "cli/compute_view.h"
#include "cli/ps_command.h"
#include "cli/surroundings.h"
#include "model/quantity.h"

namespace aliquot::cli {
namespace {

struct SetOptions {
  std::string lease, gpu, memory;
};

Status set_share(const SetOptions& options, const ComputeOptions& compute, std::ostream& out) {
  broker::ShareChange change;
  if (!options.memory.empty()) {
    const auto memory = model::parse_memory(options.memory);
    if (!memory) return memory.error();
    change.memory = *memory;
  }
  const auto wanted = change_of(compute);
  if (!wanted) return wanted.error();
  change.compute = *wanted;
  change.compute.gpu = options.gpu;
  const bool any =
      wanted->cores || wanted->weight || wanted->priority || wanted->share_class || wanted->capped;
  if (!change.memory && !any)
    return Error{Errc::kInvalid,
                 "nothing to set: give --memory, --cores, --weight, --class, --priority or --cap"};
  const auto leases = leases_called(options.lease);
  if (!leases) return leases.error();
  std::vector<broker::LeaseRow> rows;
  for (const std::string& lease : *leases) {
    auto broker = broker_of_lease(lease);
    if (!broker) return broker.error();
    change.compute.lease = lease;
    if (const Status set = broker->set_share(change); !set) return set;
    auto row = broker->get_lease(lease);
    if (!row) return row.error();
    rows.push_back(*std::move(row));
  }
  out << lease_table(rows) << '\n' << compute_table(rows);
  return {};
}

Status get_share(const std::string& name, bool json, std::ostream& out) {
  const auto leases = leases_called(name);
  if (!leases) return leases.error();
  std::vector<broker::LeaseRow> rows;
  for (const std::string& lease : *leases) {
    auto broker = broker_of_lease(lease);
    if (!broker) return broker.error();
    auto row = broker->get_lease(lease);
    if (!row) return row.error();
    rows.push_back(*std::move(row));
  }
  out << (json ? lease_json(rows, {}, {}) + '\n' : lease_table(rows) + '\n' + compute_table(rows));
  return {};
}

}  // namespace

void add_share_command(CLI::App& app, Invocation& invocation) {
  CLI::App* share = app.add_subcommand("share", "See or change the limits of a running lease");
  share->require_subcommand(1);

  CLI::App* set =
      share->add_subcommand("set", "Change them, all or none; in force when the command returns");
  auto options = std::make_shared<SetOptions>();
  set->add_option("lease", options->lease, "The lease, or pod/NAMESPACE/NAME of this node")
      ->required();
  set->add_option("--memory", options->memory, "Memory limit on each of its GPUs")
      ->type_name("QTY")
      ->check([](const std::string& text) { return text.empty() ? "is empty" : ""; });
  const auto compute = add_compute_options(*set);
  set->add_option("--gpu", options->gpu,
                  "Only on this GPU (its index on the machine, as ps shows it, or UUID)");
  set->callback([options, compute, &invocation] {
    const Status done = set_share(*options, *compute, invocation.out);
    if (done) return;
    fail(invocation, "share set", done.error());
    if (done.error().code == Errc::kInvalid) invocation.status = kUsageError;
  });

  CLI::App* get = share->add_subcommand("get", "Show them");
  auto lease = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false);
  get->add_option("lease", *lease, "The lease, or pod/NAMESPACE/NAME of this node")->required();
  get->add_flag("--json", *json, "As JSON");
  get->callback([lease, json, &invocation] {
    if (const Status done = get_share(*lease, *json, invocation.out); !done)
      fail(invocation, "share get", done.error());
  });
}

}  // namespace aliquot::cli
