// Holds the leases to what the driver measures (unaccounted.h).
#include <algorithm>
#include <map>
#include <set>

#include "broker/book.h"
#include "broker/unaccounted.h"

namespace aliquot::broker {
namespace {

// Readings a second while something looks wrong.
constexpr int kReadings = 3;

}  // namespace

// By the lease's processes: those attached, and those of its run that never did.
std::uint64_t Book::measured_bytes(const Lease& lease, const ProbedGpu& gpu,
                                   const std::vector<BypassRow>& unattached) {
  std::uint64_t bytes = 0;
  for (const ProbedProcess& process : gpu.processes)
    if (lease.has_process(process.pid)) bytes += process.bytes;
  for (const BypassRow& row : unattached)
    if (!lease.strangers_of_run({row.pid}).empty()) bytes += row.bytes;
  return bytes;
}

// False: nothing beyond the ordinary, or nothing to be learnt.
bool Book::read_excess(const std::string& driver, Excesses& least) {
  Excesses before;
  for (const auto& [name, entry] : leases_)
    if (entry.lease->driver() == driver)
      for (unsigned i = 0; i < entry.lease->gpus(); ++i)
        before[{name, i}] = entry.lease->used_bytes(i);
  const auto gpus = probe(driver);
  if (!gpus) return false;
  std::map<std::string, std::vector<BypassRow>> unattached_of;  // by UUID
  for (const BypassRow& row : unattached(*gpus))
    unattached_of[(*gpus)[row.index].uuid].push_back(row);
  bool any = false;
  for (const auto& [key, charged] : before) {
    const Lease& lease = *leases_.at(key.first).lease;
    const auto gpu = std::ranges::find(*gpus, lease.uuid(key.second), &ProbedGpu::uuid);
    std::uint64_t beyond = 0;
    if (gpu != gpus->end())
      beyond = excess(measured_bytes(lease, *gpu, unattached_of[gpu->uuid]),
                      std::max(charged, lease.used_bytes(key.second)), lease.processes());
    const auto known = least.try_emplace(key, beyond).first;
    known->second = std::min(known->second, beyond);
    any |= known->second != 0;
  }
  return any;
}

void Book::hold_to_measured() {
  std::set<std::string> drivers;
  for (const auto& [name, entry] : leases_) drivers.insert(entry.lease->driver());
  for (const std::string& driver : drivers) {
    Excesses least;
    for (int i = 0; i < kReadings && read_excess(driver, least); ++i) {
    }
    for (const auto& [key, beyond] : least)
      leases_.at(key.first).lease->hold_back(key.second, beyond);
  }
}

}  // namespace aliquot::broker
