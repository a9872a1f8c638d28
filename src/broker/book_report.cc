// What the leases hold beside what the driver measures, and who passed them by.
#include <algorithm>

#include "broker/book.h"

namespace aliquot::broker {

void Book::measure_again() {
  for (auto& [driver, open] : open_probes_) open.recent = false;
}

const std::vector<ProbedGpu>* Book::recent(const std::string& driver) {
  const auto known = open_probes_.find(driver);
  if (known == open_probes_.end() || !known->second.recent) {
    if (!probe(driver)) return nullptr;
  }
  return &open_probes_[driver].last;
}

Result<LeaseRow> Book::row(const std::string& name) {
  const auto at = find(name);
  if (!at) return at.error();
  LeaseRow row = (*at)->second.lease->row();
  compute_.charge((*at)->second.lease.get());
  compute_.add_compute(*(*at)->second.lease, row);
  add_measured(row);
  return row;
}

std::vector<LeaseRow> Book::rows_after(const std::string& after, std::size_t limit) {
  std::vector<LeaseRow> rows;
  compute_.charge();
  for (auto at = leases_.upper_bound(after); at != leases_.end() && rows.size() < limit; ++at) {
    rows.push_back(at->second.lease->row());
    compute_.add_compute(*at->second.lease, rows.back());
    add_measured(rows.back());
  }
  return rows;
}

// A driver that cannot be asked leaves the figure at 0: a row is shown all the same.
void Book::add_measured(LeaseRow& row) {
  const auto* gpus = recent(row.driver);
  if (gpus == nullptr) return;
  for (UsageRow& usage : row.gpus) {
    const auto gpu = std::ranges::find(*gpus, usage.uuid, &ProbedGpu::uuid);
    if (gpu == gpus->end()) continue;
    std::uint64_t measured = 0;
    for (const ProbedProcess& process : gpu->processes)
      if (std::ranges::find(row.rows, process.pid, &ProcessRow::pid) != row.rows.end())
        measured += process.bytes;
    usage.unaccounted_bytes =
        static_cast<std::int64_t>(measured) - static_cast<std::int64_t>(usage.used_bytes);
  }
}

// Whose run a process is of takes reads of /proc: only of those asked that are attached nowhere.
std::vector<BypassRow> Book::unattached(const std::vector<ProbedGpu>& gpus) const {
  std::vector<BypassRow> rows;
  for (std::size_t i = 0; i < gpus.size(); ++i)
    for (const ProbedProcess& process : gpus[i].processes) {
      const bool attached = std::ranges::any_of(
          leases_, [&](const auto& entry) { return entry.second.lease->has_process(process.pid); });
      if (!attached)
        rows.push_back({"", process.pid, static_cast<std::uint32_t>(i), process.bytes});
    }
  return rows;
}

std::vector<BypassRow> Book::bypasses_among(const std::string& driver,
                                            const std::vector<ProbedGpu>& gpus) const {
  std::vector<BypassRow> found;
  for (const BypassRow& row : unattached(gpus))
    for (const auto& [name, entry] : leases_) {
      if (entry.lease->driver() != driver || entry.lease->strangers_of_run({row.pid}).empty())
        continue;
      found.push_back(row);
      found.back().lease = name;
    }
  return found;
}

// Every `aliquot run` asks twice a second: each measurement is looked through once.
std::vector<BypassRow> Book::bypasses() {
  std::vector<std::string> drivers;
  for (const auto& [driver, open] : open_probes_) drivers.push_back(driver);
  std::vector<BypassRow> found;
  for (const std::string& driver : drivers) {
    const auto* gpus = recent(driver);
    if (gpus == nullptr) continue;
    auto& known = open_probes_[driver].bypasses;
    if (!known) known = bypasses_among(driver, *gpus);
    found.insert(found.end(), known->begin(), known->end());
  }
  return found;
}

}  // namespace aliquot::broker
