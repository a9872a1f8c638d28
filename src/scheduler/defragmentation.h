// Defragmentation: which placements would have to move so that more whole GPUs lie together, what
// that gains and what it costs. A proposal only: the snapshot is as before, and nothing here stops
// anybody.
//
// Nodes are emptied one at a time, the cheapest first, onto nodes that are in use already; a node
// counts only where all that it runs can leave. Pure in effect; the scheduler's loop only.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "scheduler/scheduler.h"

namespace aliquot::scheduler {

struct Movable {
  ReservationId reservation = 0;
  ClassId demand = 0;      // what it asked: where it may go
  std::string budget;      // whose disruption budget a move is charged to; empty: none needed
  std::int64_t price = 0;  // of one move, in the caller's unit (GPU-milli times seconds lost, say)
};

struct DefragmentationLimits {
  std::map<std::string, int> budgets;  // moves left for each budget; one not named has none left
  std::size_t most_moves = 64;
  // A node is emptied only where each whole GPU gained costs at most this. Negative: any price.
  std::int64_t most_price_per_gpu = -1;
};

struct Move {
  ReservationId reservation = 0;
  model::Placement from;
  model::Placement to;
};

struct DefragmentationPlan {
  std::vector<Move> moves;  // in this order each target is free when its turn comes
  std::vector<NodeId> emptied;
  int gpus_gained = 0;  // GPUs that are idle on emptied nodes and were not idle together before
  std::int64_t price = 0;
};

// What is not in `movable` stays where it is.
DefragmentationPlan plan_defragmentation(Scheduler& scheduler, const std::vector<Movable>& movable,
                                         const DefragmentationLimits& limits);

}  // namespace aliquot::scheduler
