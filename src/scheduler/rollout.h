// Rollout: what a node is worth to the requests still to come - the GPU that stays idle on average
// after the node alone is offered fixed random sequences of them and takes whatever fits.
//
// The sequences are the same for all nodes and states, so that differences between states are not
// noise. Not thread-safe: remembers what it has computed.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/rollout_tuning.h"
#include "scheduler/share_state.h"
#include "scheduler/workload.h"

namespace aliquot::scheduler {

class Rollout {
 public:
  Rollout(const Workload& workload, const RolloutTuning& tuning);

  // Milli-GPU left idle, summed over the sequences, plus the blocks term: the lower the better.
  std::int64_t idle_left(const ShareState& state, const NodeShape& shape);
  int sequences() const { return tuning_.sequences; }

  // The share of the workload's GPU demand that this model can serve, 0..1000.
  int served(std::int32_t shape_id, const NodeShape& shape) {
    return suited(shape_id, shape).served;
  }

 private:
  struct Step {
    std::int32_t cpu_milli;
    std::int16_t gpu_milli;
    std::int16_t gpus;
    // The least that any later request for a GPU asks: below it nothing more can fit.
    std::int32_t least_cpu;
    std::int16_t least_gpu;
  };
  struct Block {  // shapes of two and more GPUs
    std::int32_t cpu_milli;
    std::int16_t gpus;
    std::int64_t weight;  // share of GPU demand, 1/2^20
  };
  // The sequences as this kind of node sees them: without what its model cannot serve.
  struct Suited {
    std::vector<std::vector<Step>> sequences;
    std::vector<Block> blocks;
    int served = 0;
    bool known = false;
  };
  const Suited& suited(std::int32_t shape_id, const NodeShape& shape);
  static void note_least(std::vector<Step>& steps);
  std::int64_t play(ShareState state, const std::vector<Step>& steps) const;
  std::int64_t blocked(const ShareState& state, const Suited& suited) const;

  RolloutTuning tuning_;
  std::vector<WorkShape> shapes_;
  std::vector<std::vector<std::uint16_t>> sequences_;  // indices into shapes_
  std::vector<Suited> by_shape_;
  ShareMemo memo_;
};

}  // namespace aliquot::scheduler
