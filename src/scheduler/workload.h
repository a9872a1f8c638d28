// Workload: which shapes of request are expected, and how often. FGD and roll-out weigh what a
// placement spoils by what is still to come.
//
// Pure values; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/cluster.h"

namespace aliquot::scheduler {

struct WorkShape {
  std::int64_t cpu_milli = 0;
  int gpu_milli = 0;  // of each GPU; 0 where gpus is 0
  int gpus = 0;
  std::vector<std::string> models;  // sorted; empty: any
  std::int64_t count = 0;           // how often it was seen

  bool same_shape(const WorkShape& other) const {
    return cpu_milli == other.cpu_milli && gpu_milli == other.gpu_milli && gpus == other.gpus &&
           models == other.models;
  }
};

struct Workload {
  std::vector<WorkShape> shapes;  // most frequent first
  std::int64_t total = 0;         // sum of the counts
};

// How much GPU there is of each model.
struct ModelCapacity {
  std::string model;
  std::int64_t gpu_milli = 0;
};

std::vector<ModelCapacity> capacity_of(const std::vector<model::NodeSpec>& nodes);

// For each model of `capacity`: the demand that names models, spread over the models it names, as a
// part (1/1000) of what there is of this model when total demand just fills the cluster.
std::vector<int> named_load(const Workload& workload, const std::vector<ModelCapacity>& capacity);

// Equal shapes added up, sorted by count (ties by amounts), cut where `percent` of all requests are
// covered: FGD's "typical pods" with 95.
Workload workload_of(const std::vector<WorkShape>& seen, int percent = 95);

}  // namespace aliquot::scheduler
