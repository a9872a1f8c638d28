// Fragmentation: FGD's measure of GPU capacity that the expected workload cannot use.
//
// F_n(m), for a node n and a shape m: all that is free on the GPUs of n when m does not fit by CPU,
// GPU or model, or asks no GPU; else what is free on GPUs too small for m. F_n = sum of
// count_m * F_n(m), in milli-GPU times requests. Source: Weng et al., "Beware of Fragmentation",
// USENIX ATC 2023. Host memory plays no part.
//
// Not thread-safe: caches which shapes suit which nodes.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/share_state.h"
#include "scheduler/workload.h"

namespace aliquot::scheduler {

class Fragmentation {
 public:
  explicit Fragmentation(Workload workload) : workload_(std::move(workload)) {}

  std::int64_t of(const ShareState& state, const NodeShape& shape);
  // Sum of all counts: of() / total() is in milli-GPU.
  std::int64_t total() const { return workload_.total; }

 private:
  struct Step {
    std::int64_t cpu_milli;
    int gpu_milli;
    int gpus;
    std::int64_t count;
  };
  // The shapes that this kind of node can serve at all.
  struct Suited {
    std::vector<Step> steps;
    std::int64_t others = 0;  // requests of shapes that it cannot serve, or without GPU
    bool known = false;
  };
  const Suited& suited(std::int32_t shape_id, const NodeShape& shape);

  Workload workload_;
  std::vector<Suited> by_shape_;
  ShareMemo memo_;
};

}  // namespace aliquot::scheduler
