// What a lease tells about itself. Everything from the ledger is a claim of the tenant: clamped.

#include <algorithm>

#include "broker/lease.h"
#include "common/pidfd.h"

namespace aliquot::broker {
namespace {

constexpr std::size_t kMostRows = 256;

std::uint64_t saturating_sum(std::uint64_t a, std::uint64_t b) { return a + b < a ? ~0ull : a + b; }

}  // namespace

LeaseGrant Lease::as_granted() const {
  LeaseGrant granted;
  granted.name = name();
  granted.directory = files_.tenant_directory().string();
  granted.id = grant().lease_id;
  granted.guarded = files_.is_guarded();
  for (unsigned gpu = 0; gpu < gpus(); ++gpu)
    granted.gpus.push_back({gpu_index(gpu), uuid(gpu), limit_bytes(gpu), cores(gpu),
                            wire::Policy{grant().gpu[gpu].policy.load()}});
  return granted;
}

LeaseRow Lease::row() const {
  LeaseRow row;
  row.name = name();
  row.driver = driver();
  row.directory = files_.tenant_directory().string();
  row.id = grant().lease_id;
  row.state = state();
  row.guarded = files_.is_guarded();
  row.runners = runners_;
  row.processes = static_cast<std::uint32_t>(slot_of_.size());
  row.anomalies = files_.table().anomalies;
  row.refused_attaches = files_.table().refused;
  row.held_off = held_off_;
  row.observed = is_observed();
  row.would_refuse = files_.table().would_refuse;
  const wire::LedgerView ledger = files_.ledger();
  for (unsigned gpu = 0; gpu < gpus(); ++gpu) {
    UsageRow usage;
    usage.index = gpu_index(gpu);
    usage.uuid = uuid(gpu);
    usage.total_bytes = grant().gpu[gpu].physical_bytes;
    usage.limit_bytes = limit_bytes(gpu);
    usage.held_back_bytes = held_back_bytes(gpu);
    usage.used_bytes = used_bytes(gpu);
    const wire::GrantGpu& granted = grant().gpu[gpu];
    usage.cores = granted.cores;
    usage.compute.policy = wire::Policy{granted.policy.load()};
    usage.compute.weight = granted.weight;
    usage.compute.share_class = wire::ShareClass{granted.share_class.load()};
    usage.compute.priority = granted.priority;
    usage.compute.capped = granted.capped != 0;
    const TableTotals& before = files_.table().totals[gpu];
    usage.refusals = before.refusals;
    usage.launches = before.launches;
    usage.waiting_ns = before.waiting_ns;
    usage.kind_bytes.assign(wire::kKinds, 0);
    for (const auto& [identity, slot] : slot_of_) {
      const wire::Cell& cell = ledger.cell(slot, gpu);
      for (unsigned kind = 0; kind < wire::kKinds; ++kind)
        usage.kind_bytes[kind] =
            std::min(saturating_sum(usage.kind_bytes[kind],
                                    quota(gpu).bytes_of_kind(slot, wire::Kind{kind})),
                     wire::kByteMask);
      usage.refusals = saturating_sum(usage.refusals, cell.refusals);
      usage.launches = saturating_sum(usage.launches, cell.launches);
      usage.waiting_ns = saturating_sum(usage.waiting_ns, cell.waiting_ns);
      row.would_refuse = saturating_sum(row.would_refuse, cell.would_refuse);
      usage.compute.gate_refusals = saturating_sum(usage.compute.gate_refusals, cell.gate_refusals);
    }
    row.gpus.push_back(std::move(usage));
  }
  for (const auto& [identity, slot] : slot_of_) {
    if (row.rows.size() == kMostRows) break;
    ProcessRow process{identity.pid, slot, {}};
    for (unsigned gpu = 0; gpu < gpus(); ++gpu)
      process.held_bytes.push_back(std::min(quota(gpu).held_bytes(slot), wire::kByteMask));
    row.rows.push_back(std::move(process));
  }
  return row;
}

bool Lease::has_process(std::int32_t pid) const {
  return std::ranges::any_of(slot_of_, [&](const auto& known) { return known.first.pid == pid; });
}

void Lease::send_signal(int number) const {
  for (const auto& [identity, slot] : slot_of_)
    if (slot_pidfd_[slot]) signal_process(slot_pidfd_[slot], number);
}

std::vector<std::int32_t> Lease::strangers_of_run(const std::vector<std::int32_t>& pids) const {
  std::vector<std::int32_t> strangers;
  for (const std::int32_t pid : pids) {
    if (!has_process(pid) && belongs(pid) != Belongs::kNo) strangers.push_back(pid);
  }
  return strangers;
}

}  // namespace aliquot::broker
