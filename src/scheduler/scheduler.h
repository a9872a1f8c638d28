// Scheduler: one request in, one answer out - placed (and reserved), not now, or never - under one
// policy. Gangs, queues and preemption are built on it (gang.h, planner.h).
//
// Every distinct node state is scored once for each class of demand and remembered; a decision
// walks the states that nodes are in now. Same input, same answer: no clock, no chance. What is
// remembered is bounded: past that the scores of all other classes are forgotten and made anew.
//
// Not thread-safe: one loop owns it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/result.h"
#include "model/request.h"
#include "scheduler/filters.h"
#include "scheduler/policy.h"
#include "scheduler/snapshot.h"

namespace aliquot::scheduler {

using ClassId = std::uint32_t;

enum class Outcome : std::uint8_t {
  kPlaced,
  kNotNow,  // fits once others leave: explain() says who must free what
  kNever,   // fits no node even if that were empty: explain() says why
};

struct Decision {
  Outcome outcome = Outcome::kNever;
  Score score = 0;
  ReservationId reservation = 0;  // 0 unless placed
  model::Placement placement;
};

// Nodes with the same thing in the way, folded: "6 nodes: 4 GPUs free, none pair by NVLink".
struct FoldedReason {
  Refusal kind;
  std::string words;
  std::size_t nodes = 0;
};

struct Explanation {
  Outcome outcome = Outcome::kNever;  // kPlaced: it would fit now
  std::vector<FoldedReason> reasons;  // most nodes first
  std::string would_help;             // not now: the least that would have to free up, and where
  std::string text() const;           // one line of all of it
};

class Scheduler {
 public:
  // Scores kept at most, but for those of the class that is asked about: 384 MiB.
  static constexpr std::size_t kMostRemembered = std::size_t{1} << 25;

  Scheduler(std::vector<model::NodeSpec> nodes, std::unique_ptr<Policy> policy,
            std::size_t most_remembered = kMostRemembered);

  // Chooses a node among `within` (all nodes without it; borrowed for the call) and reserves. The
  // caller commits or releases the reservation. Invalid where the request makes no sense.
  Result<Decision> place(const model::Request& request);
  Decision place(ClassId demand);
  Decision place(ClassId demand, std::span<const NodeId> within);

  // Requests of equal demand have one class. Valid for the scheduler's life.
  Result<ClassId> classify(const model::Request& request);
  ClassId class_of(const Demand& demand);  // of one made from demands of requests
  const Demand& demand(ClassId id) const { return classes_[id].demand; }

  // Looks at every node; for people, not for the fast path.
  Explanation explain(ClassId demand) const;
  Explanation explain(ClassId demand, std::span<const NodeId> within) const;

  Snapshot& snapshot() { return snapshot_; }
  const Snapshot& snapshot() const { return snapshot_; }
  const Policy& policy() const { return *policy_; }
  Policy& policy() { return *policy_; }
  std::size_t remembered() const { return remembered_; }  // scores, or room for them

 private:
  struct Entry {
    Score score = kUnknown;
    GpuMask gpus = 0;  // for a demand of one ask; others are assigned again when they win
    Score when_rare = 0;
  };
  struct Class {
    Demand demand;
    std::vector<Entry> memo;  // by StateId
    // The scores of the states that nodes are in now, by slot of StateIndex::active(): what a
    // decision walks. seen[i] is the state that dense[i] was taken for.
    std::vector<StateId> seen;
    std::vector<Score> dense;
    std::uint64_t generation = 0;
    std::optional<bool> ever;
    std::size_t shapes_seen = 0;
  };
  struct Best {
    NodeId node = kNoNode;
    Score score = -1;
  };
  static constexpr Score kUnknown = -2;
  static constexpr Score kRefused = -1;

  void refresh(Class& c);
  void forget(Class& c);
  const Entry& entry(Class& c, StateId state);
  // Below 0 where it does not fit.
  Score score(Class& c, StateId state) { return less_rare(entry(c, state), state); }
  Score less_rare(const Entry& entry, StateId state) const;
  Entry evaluate(const Class& c, const NodeView& view);
  NodeId first_open(StateId state, Bytes memory) const;
  Best best_of_all(Class& c);
  Best best_within(Class& c, std::span<const NodeId> within);
  Best uniform(Class& c, std::span<const NodeId> within, bool everywhere);
  Decision reserve(Class& c, const Best& best);
  Decision refuse(Class& c);
  bool ever_fits(const Demand& demand) const;
  std::optional<Refusal> node_refusal(NodeId node, const Demand& demand) const;
  std::string would_help(const Demand& demand, std::span<const NodeId> within) const;

  std::unique_ptr<Policy> policy_;
  Snapshot snapshot_;
  std::vector<Class> classes_;
  std::unordered_multimap<std::size_t, ClassId> by_hash_;
  std::size_t most_remembered_;
  std::size_t remembered_ = 0;
};

}  // namespace aliquot::scheduler
