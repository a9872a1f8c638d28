// Figures: one consistent look at a node, from which metrics and `ps` are made.
//
// A value that was not measured, or is too old, is nullopt: it is left out, never repeated. Values;
// any thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "inventory/health.h"

namespace aliquot::node {

struct XidFigure {
  std::uint64_t count = 0;
  double last_unix_s = 0;
};

struct GpuFigures {
  unsigned index = 0;  // in PCI order
  std::string uuid;
  std::string model;
  inventory::HealthState health = inventory::HealthState::kHealthy;
  std::optional<double> age_s;  // since it last answered a probe; nullopt: never did
  std::map<unsigned, XidFigure> xids;
  // Absent while the GPU does not answer.
  std::optional<std::uint64_t> memory_total_bytes;
  std::optional<std::uint64_t> memory_used_bytes;
  std::optional<double> utilization;         // 0 to 1
  std::optional<double> memory_utilization;  // of the time, device memory was read or written
  std::optional<double> temperature_c;
  std::optional<double> power_w;
  std::optional<double> energy_j;  // since the driver was loaded
  std::optional<unsigned> nvlinks_up;
  std::optional<unsigned> nvlinks;
  std::optional<double> sm_mhz;
  std::optional<double> memory_mhz;
  // What is handed out, which needs no answer of the GPU.
  std::uint64_t memory_granted_bytes = 0;
  double cores_granted = 0;  // 0 to 1; more with overcommit
  unsigned leases = 0;
};

// A container's part of one GPU; outside Kubernetes a lease's, with empty pod and namespace.
struct ShareFigures {
  std::string name_space;
  std::string pod;
  std::string container;  // the lease's name outside Kubernetes
  unsigned gpu = 0;
  std::string uuid;
  std::uint64_t memory_limit_bytes = 0;
  std::uint64_t memory_used_bytes = 0;
  double cores = 0;                   // guaranteed, 0 to 1; 0: none
  std::optional<double> utilization;  // of the GPU's time, 0 to 1
  double busy_s = 0;                  // of the GPU's time, since the lease began
  double throttled_s = 0;             // threads waited at the gate
  std::uint64_t refusals = 0;
  std::uint64_t launches = 0;
  double granted_byte_s = 0;  // limit x time
  double unused_byte_s = 0;   // of it, what was not in use
  double energy_j = 0;        // the GPU's energy by the part of its time that was held
  std::uint64_t processes = 0;
  std::optional<std::uint64_t> observed_refusals;  // of the lease, at its first GPU; observed only
  std::uint64_t bypasses = 0;  // times that work past the gate or the ledger was found
};

struct NodeFigures {
  std::string node;
  std::string version;  // of this program
  std::string driver;   // "580.65.06"
  bool simulated = false;
  bool registered = false;               // kubelet holds our stream
  std::uint64_t slot_mismatches = 0;     // kubelet's slot lay on another GPU than the assignment
  std::uint64_t leaked_leases = 0;       // found and repaired
  std::uint64_t lists_put_off = 0;       // kubelet refused to say who holds what: asked too often
  std::uint64_t unleased_processes = 0;  // on a GPU now, without a lease
  std::optional<double> inventory_age_s;
  std::vector<GpuFigures> gpus;
  std::vector<ShareFigures> shares;
};

}  // namespace aliquot::node
