// The processes of the share, as the caller's pid namespace counts them.
//
// The library knows processes by the host's pids, of every tenant. The ledger knows those of the
// lease, what each holds, and (from the broker) both its numbers. A process of another pid
// namespace than the caller's has no number here and is left out. The numbers are for display: a
// tenant can only deceive itself with them.
//
// Any thread, while the lease stands.
#pragma once

#include <cstdint>

#include "interposer/tenant.h"

namespace aliquot::interposer {

struct OwnProcess {
  unsigned pid = 0;         // in the caller's namespace
  unsigned driver_pid = 0;  // as the library says it
  std::uint64_t bytes = 0;  // held on the GPU that was asked about
};

// The caller's pid namespace; 0 where /proc is missing.
std::uint64_t own_pid_namespace();

// Every attached process of the lease that has a number here, also those that hold nothing.
template <class Visit>
void for_each_own_process(unsigned gpu, Visit visit) {
  const std::uint64_t here = own_pid_namespace();
  const wire::LedgerView& ledger = tenant().ledger();
  for (unsigned slot = 0; slot < ledger.slots(); ++slot) {
    const wire::Cell& cell = ledger.cell(slot, gpu);
    const OwnProcess process{cell.own_pid.load(std::memory_order_relaxed),
                             cell.broker_pid.load(std::memory_order_relaxed),
                             tenant().quota(gpu).held_bytes(slot)};
    if (process.pid != 0 && cell.pid_namespace.load(std::memory_order_relaxed) == here)
      visit(process);
  }
}

// 0 where the number is not of a process of the share.
unsigned pid_of_driver_pid(unsigned driver_pid);
unsigned driver_pid_of_pid(unsigned pid);

}  // namespace aliquot::interposer
