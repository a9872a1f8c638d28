// Snapshot: what is taken and what is free on every node, and the only place where that changes.
//
// A reservation is a transaction: reserve() checks every amount again and takes all or nothing, so
// two requests can never win the same bytes; commit() says that the placement is real; release()
// gives back exactly what was taken. Choosing a node is left to Scheduler.
//
// Not thread-safe: one loop owns it.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "common/result.h"
#include "model/placement.h"
#include "scheduler/state_index.h"

namespace aliquot::scheduler {

using ReservationId = std::uint64_t;  // counts up from 1, never used twice

// Which parts of a node's state a policy's score depends on. What it does not read is left out of
// the state, so that more nodes share one.
struct StateParts {
  bool positions = false;  // which GPU is free matters (links), not only how much
  bool kinds = false;      // which kinds of request run there
  bool measured = false;   // how busy each GPU was measured to be
};

class Snapshot {
 public:
  struct Reservation {
    model::Placement placement;
    bool committed = false;
  };

  // Node i of `nodes` has id and rank i. Each has at most kMaxGpusPerNode GPUs.
  explicit Snapshot(std::vector<model::NodeSpec> nodes, StateParts parts = {});

  // Exhausted where it no longer fits, invalid where the placement makes no sense; both take
  // nothing.
  Result<ReservationId> reserve(const model::Placement& placement);
  Status commit(ReservationId id);
  Status release(ReservationId id);
  // For questions of "what if it were gone": gives the amounts back and keeps the id. Whoever
  // suspends resumes, after taking back whatever was reserved meanwhile.
  void suspend(ReservationId id);
  void resume(ReservationId id);
  void forget_suspended(ReservationId id) { book_.erase(id); }  // instead of resuming
  const Reservation* find(ReservationId id) const;
  const std::unordered_map<ReservationId, Reservation>& reservations() const { return book_; }

  // A node added gets the next rank. A cordoned node keeps what it runs and takes nothing new.
  Result<NodeId> add_node(model::NodeSpec spec);
  void cordon(NodeId node, bool cordoned) { nodes_[node].spec.cordoned = cordoned; }
  // Memory of a GPU in use by nobody whom the snapshot knows, as measured. Upper bound on what can
  // still be promised; it takes nothing from those placed already.
  void set_foreign_memory(NodeId node, int gpu, Bytes bytes);

  // Compute of a GPU at work, as measured `age_s` seconds ago. It fades: at once it counts in full,
  // at kMeasuredFades seconds what is promised counts instead. Whoever measures says it again as it
  // ages. It may enter a policy's score; it neither takes nor gives anything.
  static constexpr std::int64_t kMeasuredFades = 300;
  void set_measured_compute(NodeId node, int gpu, int milli, std::int64_t age_s);

  std::size_t size() const { return nodes_.size(); }
  const model::NodeSpec& spec(NodeId node) const { return nodes_[node].spec; }
  StateId state_id(NodeId node) const { return nodes_[node].state; }
  std::uint32_t shape_id(NodeId node) const { return nodes_[node].shape; }
  const NodeShape& shape(std::uint32_t id) const { return shapes_[id]; }
  std::size_t shapes() const { return shapes_.size(); }
  const StateIndex& index() const { return index_; }

  // The node as it is, GPUs by position, whatever the policy reads.
  NodeState state(NodeId node) const;
  // positions[i] is the GPU of the node that stands at i in its grouped state.
  std::array<std::uint8_t, model::kMaxGpusPerNode> positions(NodeId node) const;
  Bytes free_memory(NodeId node) const { return nodes_[node].free_memory; }
  int pods(NodeId node) const { return nodes_[node].pods; }
  // Whether the node takes new requests, of this much host memory.
  bool open(NodeId node, Bytes memory) const {
    const Node& n = nodes_[node];
    return !n.spec.cordoned && n.pods < n.spec.max_pods && n.free_memory >= memory;
  }

  // Equal for equal contents: nodes, amounts, reservations and their ids.
  std::uint64_t digest() const;

 private:
  struct Gpu {
    Bytes memory_taken = 0;
    Bytes memory_foreign = 0;
    std::int32_t cores_taken = 0;
    std::uint16_t parts = 0;
    bool whole = false;
    std::uint8_t mig_used = 0;
    std::int16_t measured_milli = 0;
    std::int16_t measured_weight = 0;  // of kMeasuredFades
  };
  struct Node {
    model::NodeSpec spec;
    std::uint32_t shape = 0;
    StateId state = kNoState;
    std::int64_t free_cpu = 0;
    Bytes free_memory = 0;
    std::int32_t pods = 0;
    std::array<std::uint16_t, 8> kinds{};
    std::vector<Gpu> gpus;
  };

  Status check(const model::Placement& placement) const;
  Status check_gpu(const Node& node, const model::GpuPart& part) const;
  Status take(const model::Placement& placement);
  void give_back(const model::Placement& placement);
  void regroup(NodeId id);
  std::uint32_t intern(const NodeShape& shape);
  GpuState gpu_state(const Node& node, int i) const;

  StateParts parts_;
  std::vector<Node> nodes_;
  std::vector<NodeShape> shapes_;
  StateIndex index_;
  std::unordered_map<ReservationId, Reservation> book_;
  ReservationId next_ = 1;
};

}  // namespace aliquot::scheduler
