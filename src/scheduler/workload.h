// Workload: which shapes of request are expected, and how often. FGD and roll-out weigh what a
// placement spoils by what is still to come.
//
// Pure values; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

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

// Equal shapes added up, sorted by count (ties by amounts), cut where `percent` of all requests are
// covered: FGD's "typical pods" with 95.
Workload workload_of(const std::vector<WorkShape>& seen, int percent = 95);

}  // namespace aliquot::scheduler
