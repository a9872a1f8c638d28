// The constants of the rollout policy. Chosen by bench/tune_rollout.py on openb lists that the
// published results do not cover; docs/adr tells the trade.
//
// A value; any thread.
#pragma once

#include <cstdint>

namespace aliquot::scheduler {

struct RolloutTuning {
  // The roll-out: how many sequences of how many requests a node is offered.
  int sequences = 64;
  int length = 87;
  // How often a shape is drawn, relative to its count: (GPUs asked) ^ -size_exponent, and a factor
  // for requests without GPU, for small and for large shares. Percent.
  int cpu_only = 30;
  int size_exponent = 40;
  int small_share = 10;   // up to 200 milli
  int large_share = 140;  // 700 to 999 milli
  // Costs beside it. Milli-GPU, percent.
  int blocks = 2;          // of the GPU that larger requests cannot use
  int opening = 60;        // of taking 0 of the 8 GPUs of an idle node of 8
  int rare_opening = 500;  // more of it for the last idle nodes of a kind,
  int rare_nodes = 24;     // from so few on
  int scarcity = 60;       // of what is asked, where only this model serves much of the demand
  int scarcity_power = 1;
  int step = 20;  // costs are rounded to it, so that near-ties go by rank
  std::uint64_t seed = 7;
};

}  // namespace aliquot::scheduler
