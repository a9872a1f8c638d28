// Where a request went: a node, and on it the part of each GPU that each container holds.
//
// Values; no thread rules.
#pragma once

#include <cstdint>
#include <vector>

#include "model/cluster.h"

namespace aliquot::model {

struct GpuPart {
  int gpu = 0;        // position on the node
  int container = 0;  // index in Request::containers; beyond them: in Request::init_containers
  Bytes memory_bytes = 0;
  int cores_milli = 0;
  bool whole = false;         // nobody else may use this GPU
  std::uint8_t mig_mask = 0;  // the memory slices held, for a MIG slice
  bool operator==(const GpuPart&) const = default;
};

struct Placement {
  int node = -1;  // index in the snapshot: its rank
  std::int64_t cpu_milli = 0;
  Bytes memory_bytes = 0;
  std::uint8_t kind = 0;  // the scheduler's class of the request by its GPUs (demand.h)
  std::vector<GpuPart> gpus;
  bool operator==(const Placement&) const = default;
};

}  // namespace aliquot::model
