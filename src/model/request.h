// What somebody asks for: a pod-like request of containers, each with its part of CPUs, memory and
// GPUs, and what the GPUs must be. How it is placed is the scheduler's matter.
//
// Values; no thread rules.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/cluster.h"

namespace aliquot::model {

enum class GpuKind : std::uint8_t {
  kShare,  // a part of each of `count` GPUs
  kWhole,  // `count` GPUs that nobody else uses
  kMig,    // `count` MIG slices of one profile, each on any GPU in MIG mode
};

// Amounts are per GPU. Memory asked in bytes and in percent counts as the larger of the two.
struct GpuAsk {
  GpuKind kind = GpuKind::kShare;
  int count = 1;
  int cores_milli = 0;  // guaranteed compute; 0: what is left over
  Bytes memory_bytes = 0;
  int memory_percent = 0;
  std::string mig_profile;  // kMig only, exact name
  bool operator==(const GpuAsk&) const = default;
};

struct Container {
  std::string name;
  std::int64_t cpu_milli = 0;
  Bytes memory_bytes = 0;
  std::optional<GpuAsk> gpu;
  bool operator==(const Container&) const = default;
};

// The least a GPU must be; 0 asks nothing. A GPU whose figure is not known meets no floor.
struct GpuFloor {
  int compute_capability = 0;
  Bytes memory_bytes = 0;
  int tflops = 0;
  bool operator==(const GpuFloor&) const = default;
};

// How the GPUs of one ask must be tied to each other inside the node.
enum class LinkNeed : std::uint8_t { kAny, kSameNuma, kNvlink };

struct Request {
  std::string name;
  std::vector<Container> containers;
  // Init containers run one after another before the others and reuse their GPUs: what is reserved
  // is the larger of any one of them and all containers together.
  std::vector<Container> init_containers;

  std::vector<std::string> gpu_models;  // any of these, by exact name; empty: any model
  GpuFloor floor;
  LinkNeed links = LinkNeed::kAny;
  int max_latency_us = 0;  // the latency it bears; 0: any
  std::string tenant;      // compared with a node's owner
};

}  // namespace aliquot::model
