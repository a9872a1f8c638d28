// What a cluster is made of: nodes with their GPUs, as an administrator or an inventory describes
// them. Capacities only; what is taken from them is the scheduler's snapshot.
//
// Amounts are integers: bytes, 1/1000 CPU core, 1/1000 GPU ("milli"). Values; no thread rules.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace aliquot::model {

using Bytes = std::int64_t;

inline constexpr int kMaxGpusPerNode = 16;
inline constexpr int kWholeGpuMilli = 1000;

// A GPU model compares by exact name, never by substring ("A10" is not "A100"), or by floors.
struct GpuModel {
  std::string name;
  int compute_capability = 0;  // 10 * major + minor: 90 is SM 9.0; 0 is not known
  Bytes memory_bytes = 0;      // 0: not known, so a request for memory is refused
  int tflops = 0;              // dense FP16; 0 is not known
  bool operator==(const GpuModel&) const = default;
};

// Where a MIG profile may lie: `slices` memory slices from any of the start positions.
struct MigProfile {
  std::string name;  // "1g.10gb"
  int slices = 0;    // memory slices it covers, of 8
  std::vector<int> starts;
  bool operator==(const MigProfile&) const = default;
};

// How near to its users a node stands.
enum class Tier : std::uint8_t { kCloud, kEdge, kDevice };

// More than 100 promises a GPU more than once.
struct Overcommit {
  int memory_percent = 100;
  int cores_percent = 100;
  bool operator==(const Overcommit&) const = default;
};

struct NodeSpec {
  std::string name;
  std::int64_t cpu_milli = 0;
  Bytes memory_bytes = 0;
  int max_pods = 110;

  int gpu_count = 0;  // at most kMaxGpusPerNode, all of one model
  GpuModel gpu;
  std::uint32_t mig_gpus = 0;  // bit i: GPU i is in MIG mode and serves MIG slices only
  std::vector<MigProfile> mig_profiles;
  Overcommit overcommit;
  std::string topology;  // name of the link shape; nodes of equal shape share search tables

  Tier tier = Tier::kCloud;
  int latency_us = 0;  // from the users of this node's tier
  std::string owner;   // tenant that may claim this node back from others; empty: nobody

  // The tree of domains above this node, outermost first: {"core-0", "spine-1", "rail-3"}.
  std::vector<std::string> domains;
  bool cordoned = false;
};

}  // namespace aliquot::model
