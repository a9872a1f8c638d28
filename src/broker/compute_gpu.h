// ComputeGpu: the broker's half of the compute gate on one GPU. Reads what the leases' processes
// report in their ledgers, has the Arbiter decide, and writes the windows into their grants.
//
// Leaves to others: when to step (compute_thread.h), which leases are on the GPU (compute.h), what
// the driver measures. Time is an argument; nothing here waits. Everything read
// from a ledger is a claim: it is bounded, and no loop's length depends on it. One thread at a
// time.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "gate/arbiter.h"
#include "gate/audit.h"
#include "gate/united.h"
#include "wire/grant.h"
#include "wire/ledger.h"

namespace aliquot::broker {

// What the grant page says of a lease's claim to a GPU's time.
gate::TenantTerms terms_of(const wire::GrantGpu& grant);

class ComputeGpu {
 public:
  // `slowness`: nanoseconds of the clock per nanosecond of the machine (10: a tenth of the speed).
  ComputeGpu(const gate::GpuTerms& terms, double slowness);

  // A lease's part of the GPU, by its number in the lease. Both are mapped until remove(). The
  // grant may come from another broker: its windows are replaced at once, their numbers go on.
  std::size_t add(Nanoseconds now, wire::GrantGpu& grant, wire::LedgerView ledger, unsigned gpu);
  void remove(Nanoseconds now, std::size_t tenant);
  // A process of the lease has the slot, or has it no more: what it asked for goes with it.
  void take_slot(Nanoseconds now, std::size_t tenant, unsigned slot);
  void leave_slot(Nanoseconds now, std::size_t tenant, unsigned slot);
  // The grant's terms have changed; the charge changes at once.
  void read_terms(Nanoseconds now, std::size_t tenant);
  void ban(Nanoseconds now, std::size_t tenant, Nanoseconds time);
  void set_gpu_terms(Nanoseconds now, const gate::GpuTerms& terms);

  // Reads, decides, publishes. Step again when a demand word has changed, and not later than this.
  Nanoseconds step(Nanoseconds now);

  // The words that processes bump when the broker is to look, with what the last step has seen.
  struct Demand {
    const std::atomic<std::uint32_t>* word = nullptr;
    std::uint32_t seen = 0;
  };
  // Of leases with processes. Whoever bumps too often is left out for a while: muted_until().
  const std::vector<Demand>& demands() const { return demands_; }

  // The driver had the lease's processes on the device for `percent` of the period that ended at
  // `end`. What is more than its windows allowed is charged; an offender's debts are not forgiven.
  gate::Audit::Finding judge(std::size_t tenant, Nanoseconds end, Nanoseconds period,
                             double percent);
  // Device time of work that had no window at all: charged, and its lease an offender.
  void add_bypass(std::size_t tenant, Nanoseconds used);
  void mark_offender(std::size_t tenant);

  struct Look {
    gate::Standing standing = gate::Standing::kIdle;
    gate::Account account;
    gate::Share share;
    Nanoseconds lag = 0;
    Nanoseconds longest_kernel = 0;
    Nanoseconds banned_until = 0;
    std::uint64_t bypasses = 0;
    Nanoseconds bypass_ns = 0;
    bool offender = false;
  };
  Look look(Nanoseconds now, std::size_t tenant) const;
  std::size_t tenants() const { return count_; }
  bool has_processes(std::size_t tenant) const { return !tenants_[tenant].processes.empty(); }

 private:
  struct Process {
    unsigned slot = 0;
    gate::UnitedReports::Process seen{};
    gate::TenantReport last{};  // the last that was read whole
  };
  struct Tenant {
    wire::GrantGpu* grant = nullptr;  // null: the place is free
    wire::LedgerView ledger{};
    unsigned gpu = 0;
    std::uint32_t number_offset = 0;
    std::vector<Process> processes{};
    gate::UnitedReports united{};
    std::uint32_t demand_seen = 0;
    double wakes_left = 0;
    bool published = false;
    bool offender = false;
    std::uint64_t bypasses = 0;
    Nanoseconds bypass_ns = 0;
  };

  gate::TenantReport report_of(Tenant& tenant, Nanoseconds now);
  Nanoseconds see_demands(Nanoseconds now);
  void publish(std::size_t tenant);

  gate::ArbiterOptions options_;
  gate::Arbiter arbiter_;
  gate::Audit audit_;
  std::vector<Nanoseconds> allowances_;  // of a step
  std::vector<Tenant> tenants_;          // by the arbiter's slot
  std::vector<gate::TenantReport> reports_;
  std::vector<Demand> demands_;
  std::size_t count_ = 0;
  Nanoseconds stepped_at_ = 0;
};

}  // namespace aliquot::broker
