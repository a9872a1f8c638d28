// The values that administrators and the broker exchange: what is asked for, what was granted, what
// is used. Values; any thread. How they travel: docs/formats/broker.md.
#pragma once

#include <cstdint>
#include <optional>
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
  std::uint32_t weight = 1;
  wire::ShareClass share_class = wire::ShareClass::kOffline;
  std::uint32_t priority = 0;
  bool capped = false;  // never more than the cores, whatever is idle
  wire::Oversubscription oversubscription = wire::Oversubscription::kOff;
  std::string real_libcuda;  // absolute paths behind the interposer
  std::string real_libnvidia_ml;
  bool observe = false;  // memory: count what would have been refused, refuse nothing
  std::string cgroup;    // where the run is confined to one: processes in it belong to the lease
                         // (as run_membership.h names cgroups)
};

struct GrantedGpu {
  std::uint32_t index = 0;  // on the machine, PCI order
  std::string uuid;
  std::uint64_t limit_bytes = 0;
  std::uint32_t cores = 0;
  wire::Policy policy = wire::Policy::kBurst;
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

// What a lease's processes did at the compute gate. Times are the host's.
enum class ComputeState : std::uint8_t { kIdle, kWaiting, kHolding, kBanned, kPaused, kCapped };
struct ComputeRow {
  wire::Policy policy = wire::Policy::kBurst;
  std::uint32_t weight = 1;
  wire::ShareClass share_class = wire::ShareClass::kOffline;
  std::uint32_t priority = 0;
  bool capped = false;
  std::uint32_t share = 0;  // 1/100 % of the GPU's time, as things stand
  std::uint32_t busy = 0;   // 1/100 %, of the last second
  ComputeState state = ComputeState::kIdle;
  std::uint64_t banned_for_ns = 0;
  std::uint64_t charged_ns = 0;  // since this broker has kept the account
  std::uint64_t forgiven_ns = 0;
  std::uint64_t windows = 0;
  std::uint64_t unused_grants = 0;
  std::uint64_t undrained_turns = 0;
  std::uint64_t false_reports = 0;
  std::uint64_t longest_kernel_ns = 0;  // lately
  std::uint64_t gate_refusals = 0;      // work refused because no broker answered
  // Work that passed the gate by, as the driver's figures show it.
  std::uint64_t bypasses = 0;  // samples in which it was found
  std::uint64_t bypass_ns = 0;
  bool offender = false;  // its debts are not forgiven
};

struct UsageRow {
  std::uint32_t index = 0;
  std::string uuid;
  std::uint64_t total_bytes = 0;
  std::uint64_t limit_bytes = 0;
  std::uint64_t used_bytes = 0;           // charged
  std::int64_t unaccounted_bytes = 0;     // measured by the driver minus charged; 0: not known
  std::uint64_t held_back_bytes = 0;      // of the limit: held beyond what is charged and ordinary
  std::vector<std::uint64_t> kind_bytes;  // by wire::Kind
  std::uint32_t cores = 0;
  std::uint64_t refusals = 0, launches = 0, waiting_ns = 0;  // since the lease began
  ComputeRow compute;
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
  std::uint64_t refused_attaches = 0;
  std::uint64_t held_off = 0;  // times its socket was flooded and listened no more for a moment
  bool observed = false;       // its limits of memory are not kept, only counted
  std::uint64_t would_refuse = 0;
};

// A process that uses a leased GPU, was started by a lease's run, and never attached.
struct BypassRow {
  std::string lease;
  std::int32_t pid = 0;
  std::uint32_t index = 0;
  std::uint64_t bytes = 0;
};

// What else whoever runs the broker has to say: of aliquotd, GPUs that are not healthy, processes
// that no lease knows, tenants that misbehave.
struct NoteRow {
  std::string kind;     // "gpu_health", "unleased_process", "tenant"
  std::string subject;  // of which GPU, process or lease
  std::string text;     // for people
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
  wire::Policy policy = wire::Policy::kBurst;
  std::uint32_t max_inst = 20;
  std::string trouble;  // why what is free is not known; empty: it is
};

// How a GPU is shared, and what happens to work that passes its gate by.
enum class OnBypass : std::uint8_t { kReport, kBan, kStop, kEnd };
struct GpuSettings {
  std::string driver;
  std::string uuid;
  std::uint32_t index = 0;  // on the machine, PCI order; in answers only
  wire::Policy policy = wire::Policy::kBurst;
  std::uint32_t max_inst = 20;
  std::uint32_t prio_ratio = 0;  // percent; 0: online tenants get everything
  std::uint64_t release_ns = 100'000'000;
  bool release_auto = false;
  std::uint32_t most_cores = model::kWholeGpu;  // sum of guarantees in 1/100 %; more: overcommitted
  OnBypass on_bypass = OnBypass::kReport;
};

// What is to change of them; what is absent stays.
struct GpuChange {
  std::string driver;
  std::string gpu;  // index in PCI order or UUID
  std::optional<wire::Policy> policy;
  std::optional<std::uint32_t> max_inst, prio_ratio, most_cores;
  std::optional<std::uint64_t> release_ns;
  std::optional<bool> release_auto;
  std::optional<OnBypass> on_bypass;
};

// What is to change of a lease's compute share; what is absent stays.
struct ComputeChange {
  std::string lease;
  std::string gpu;  // index on the machine or UUID; empty: all of them
  std::optional<std::uint32_t> cores, weight, priority;
  std::optional<wire::ShareClass> share_class;
  std::optional<bool> capped;
};

// What is to change of a lease's share: both halves or neither.
struct ShareChange {
  std::optional<model::MemoryQuantity> memory;
  ComputeChange compute;  // names the lease and the GPU for both
};

}  // namespace aliquot::broker
