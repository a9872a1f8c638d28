// Planner: jobs in queues over time. Each step says which jobs start, which are stopped for whom,
// and which move; the scheduler's snapshot already holds the answer when step() returns.
//
// Rules:
//  - Queues take turns (queues.h); in a queue by priority, then age.
//  - A job that cannot start may displace others: of its own queue those of lower priority; of
//    another queue that borrows, when its own stays within its guarantee. Victims are whole jobs,
//    as few as are needed, and none before it ran min_runtime. The job that displaced them is
//    placed in the same step, so victims cannot slip back in; they rank below it for ever.
//  - A tenant that owns a node gets it back from anybody, at once. Those who leave start elsewhere
//    in the same step where there is room, and come back when the owner has left.
//  - The first job that stays blocked gets a fence: the nodes where it will fit soonest. Others may
//    start on a fenced node only when they say that they end before the job's turn comes. So what
//    runs there can only drain, and the head cannot starve behind small jobs.
//
// Time is an argument. One loop owns a planner and its scheduler.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/clock.h"
#include "scheduler/gang.h"
#include "scheduler/queues.h"

namespace aliquot::scheduler {

using JobId = std::uint64_t;

struct Job {
  JobId id = 0;  // unique, given by the caller
  std::string queue;
  std::string tenant;  // owns the nodes whose owner it equals
  int priority = 0;    // higher goes first
  Gang gang;
  std::optional<Nanoseconds> max_runtime;  // it ends by then, or is ended
  bool preemptible = true;
};

enum class ActionKind : std::uint8_t { kStart, kStop, kMove };

struct Action {
  ActionKind kind = ActionKind::kStart;
  JobId job = 0;
  std::vector<model::Placement> placements;  // kStart, kMove
  JobId for_job = 0;                         // kStop, kMove away: who needs the place; else 0
  bool operator==(const Action&) const = default;
};

struct PlannerOptions {
  Nanoseconds min_runtime = 0;  // no job is stopped for another before it ran this long
};

class Planner {
 public:
  // Borrows the scheduler, whose nodes must not change in number while the planner lives.
  static Result<Planner> create(Scheduler& scheduler, std::vector<QueueSpec> queues,
                                PlannerOptions options);

  // Invalid: unknown queue, used id, or a request that makes no sense.
  Status submit(Job job, Nanoseconds now);
  // The job ended by itself, or is withdrawn while it waits.
  Status finish(JobId id);

  std::vector<Action> step(Nanoseconds now);

  bool is_running(JobId id) const { return running_.contains(id); }
  bool is_waiting(JobId id) const;
  // Why a waiting job waits, after a step; empty for others.
  std::string why_waiting(JobId id) const;
  const QueueBook& queues() const { return book_; }

 private:
  struct Waiting {
    Job job;
    QueueId queue = 0;
    Nanoseconds submitted = 0;
    std::string why;
  };
  struct Running {
    Waiting from;
    Nanoseconds started = 0;
    std::vector<ReservationId> reservations;
    Resources taken;
  };
  struct Fence {
    JobId job = 0;
    std::vector<bool> nodes;
    std::optional<Nanoseconds> until;  // when its turn comes at the latest; none: not known
  };

  Planner(Scheduler& scheduler, QueueBook book, PlannerOptions options);

  // planner.cc
  std::vector<JobId> turn_order() const;
  bool try_start(JobId id, Nanoseconds now, bool fenced, std::vector<Action>& actions);
  void start(JobId id, const GangDecision& decision, Nanoseconds now, std::vector<Action>& actions);
  std::vector<bool> open_to(const Job& job, Nanoseconds now, bool fenced) const;
  Resources size_of(const GangDecision& decision) const;
  void undo(const GangDecision& decision);

  // planner_preemption.cc
  bool try_displace(JobId id, Nanoseconds now, std::vector<Action>& actions);
  std::vector<JobId> owner_victims(const Job& job) const;
  std::vector<JobId> lesser_victims(const Waiting& waiting, Nanoseconds now) const;
  std::vector<JobId> smallest(const Waiting& waiting, const std::vector<JobId>& eligible,
                              bool by_owner);
  std::optional<GangDecision> place_without(const Waiting& waiting, const std::vector<JobId>& gone,
                                            bool by_owner);
  bool may_take(const Waiting& waiting, const std::vector<JobId>& gone,
                const Resources& size) const;
  void stop(JobId victim, JobId for_job, bool by_owner, std::vector<Action>& actions);
  void suspend(const std::vector<JobId>& jobs);
  void resume(const std::vector<JobId>& jobs);
  bool is_at_home(const Running& running) const;

  // planner_fence.cc
  void raise_fence(JobId id);
  void bring_home(std::vector<Action>& actions);

  Scheduler* scheduler_;
  DomainTree tree_;
  QueueBook book_;
  PlannerOptions options_;
  std::map<JobId, Waiting> waiting_;
  std::map<JobId, Running> running_;
  std::map<JobId, std::vector<NodeId>> homes_;  // nodes that a job left for their owner
  std::set<JobId> stopped_now_;                 // in this step: they displace nobody
  std::optional<Fence> fence_;
};

}  // namespace aliquot::scheduler
