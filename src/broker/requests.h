// The values that administrators and the broker exchange: what is asked for, what was granted, what
// is used. Values; any thread. How they travel: docs/formats/broker.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/quantity.h"
#include "wire/grant.h"

namespace aliquot::broker {

// A part of one GPU. Cores in 1/100 % of its time; 0: no guarantee.
struct ShareRequest {
  std::string gpu;  // index in PCI order or UUID; empty: the broker chooses
  model::MemoryQuantity memory;
  std::uint32_t cores = 0;
};

struct LeaseRequest {
  std::string driver;  // names the machine; see ProbeSource
  std::string name;    // empty: the broker gives one
  std::vector<ShareRequest> shares;
  bool wait = false;                          // wait until it fits instead of being refused
  std::uint32_t slots = wire::kDefaultSlots;  // most processes at once
  wire::Policy policy = wire::Policy::kBurst;
  std::uint32_t weight = 1;
  wire::ShareClass share_class = wire::ShareClass::kOffline;
  std::uint32_t priority = 0;
  wire::Oversubscription oversubscription = wire::Oversubscription::kOff;
  std::string real_libcuda;  // absolute paths behind the interposer
  std::string real_libnvidia_ml;
  std::string cgroup;  // where the run is confined to one: processes in it belong to the lease
                       // (as run_membership.h names cgroups)
};

struct GrantedGpu {
  std::uint32_t index = 0;  // on the machine, PCI order
  std::string uuid;
  std::uint64_t limit_bytes = 0;
};

struct LeaseGrant {
  std::string name;
  std::string directory;  // what the tenant is to see as its lease directory; holds `socket`
  std::uint64_t id = 0;
  bool guarded = false;  // the grant is passed through a read-only mount (else: same-uid trust)
  std::vector<GrantedGpu> gpus;
};

struct ProcessRow {
  std::int32_t pid = 0;  // in the broker's pid namespace
  std::uint32_t slot = 0;
  std::vector<std::uint64_t> held_bytes;  // per GPU of the lease
};

struct UsageRow {
  std::uint32_t index = 0;
  std::string uuid;
  std::uint64_t total_bytes = 0;
  std::uint64_t limit_bytes = 0;
  std::uint64_t used_bytes = 0;           // charged
  std::int64_t unaccounted_bytes = 0;     // measured by the driver minus charged; 0: not known
  std::vector<std::uint64_t> kind_bytes;  // by wire::Kind
  std::uint32_t cores = 0;
  std::uint64_t refusals = 0, launches = 0, waiting_ns = 0;  // since the lease began
};

struct LeaseRow {
  std::string name;
  std::string driver;
  std::string directory;
  std::uint64_t id = 0;
  wire::LeaseState state = wire::LeaseState::kLive;
  bool guarded = false;
  std::uint32_t runners = 0;    // commands still running
  std::uint32_t processes = 0;  // attached; `rows` holds at most 256 of them
  std::vector<UsageRow> gpus;
  std::vector<ProcessRow> rows;
  std::uint64_t anomalies = 0;  // audits that found the ledger written outside the protocol
};

// A process that uses a leased GPU, was started by a lease's run, and never attached.
struct BypassRow {
  std::string lease;
  std::int32_t pid = 0;
  std::uint32_t index = 0;
  std::uint64_t bytes = 0;
};

// How much of each GPU a new share could get now.
struct RoomRow {
  std::uint32_t index = 0;
  std::string uuid;
  std::string name;
  std::uint64_t total_bytes = 0;
  std::uint64_t measured_free_bytes = 0;
  std::uint64_t promised_bytes = 0;  // sum of the limits of our leases
  std::uint64_t room_bytes = 0;
  std::uint32_t room_cores = 0;  // 1/100 %
  std::uint32_t leases = 0;
};

}  // namespace aliquot::broker
