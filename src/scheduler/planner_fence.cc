// What keeps a blocked head from starving, and what brings those home who made room for an owner.
#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "scheduler/planner.h"

namespace aliquot::scheduler {

// Finds how few running jobs, in the order in which they end, must be gone for the head to fit, and
// fences the nodes it would take. Jobs that do not say when they end count as ending last.
void Planner::raise_fence(JobId id) {
  const Waiting& w = waiting_.at(id);
  fence_.reset();
  // What its queue's limit holds back needs no nodes kept for it.
  const Result<GangDecision> now = place_gang(*scheduler_, tree_, w.job.gang);
  if (now && now->outcome == Outcome::kPlaced) return undo(*now);
  std::vector<std::pair<Nanoseconds, JobId>> ends;
  for (const auto& [running_id, running] : running_) {
    const auto& most = running.from.job.max_runtime;
    ends.emplace_back(most ? running.started + *most : std::numeric_limits<Nanoseconds>::max(),
                      running_id);
  }
  std::sort(ends.begin(), ends.end());
  const auto place_after = [&](std::size_t count) -> std::optional<GangDecision> {
    std::vector<JobId> gone;
    for (std::size_t i = 0; i < count; ++i) gone.push_back(ends[i].second);
    suspend(gone);
    Result<GangDecision> placed = place_gang(*scheduler_, tree_, w.job.gang);
    const bool fits = placed && placed->outcome == Outcome::kPlaced;
    QueueBook after = book_;
    for (const JobId other : gone)
      after.remove(running_.at(other).from.queue, running_.at(other).taken);
    const bool allowed = fits && after.within_limit(w.queue, size_of(*placed));
    if (fits) undo(*placed);
    resume(gone);
    if (!allowed) return std::nullopt;
    return *std::move(placed);
  };
  if (!place_after(ends.size())) return;  // no end of others helps it: nothing to guard
  std::size_t too_few = 0;
  std::size_t enough = ends.size();
  while (enough - too_few > 1) {
    const std::size_t middle = (too_few + enough) / 2;
    (place_after(middle) ? enough : too_few) = middle;
  }
  const std::optional<GangDecision> decision = place_after(enough);
  if (!decision) return;
  Fence fence{id, std::vector<bool>(scheduler_->snapshot().size(), false), std::nullopt};
  for (const Decision& member : decision->members)
    fence.nodes[static_cast<std::size_t>(member.placement.node)] = true;
  const Nanoseconds last = enough == 0 ? 0 : ends[enough - 1].first;
  if (last != std::numeric_limits<Nanoseconds>::max()) fence.until = last;
  fence_ = std::move(fence);
}

void Planner::bring_home(std::vector<Action>& actions) {
  for (auto it = homes_.begin(); it != homes_.end();) {
    const JobId id = it->first;
    const auto found = running_.find(id);
    if (found == running_.end() || stopped_now_.contains(id)) {
      ++it;  // it waits, or has only just left
      continue;
    }
    Running& running = found->second;
    const bool is_home =
        std::all_of(running.reservations.begin(), running.reservations.end(), [&](ReservationId r) {
          const auto node = static_cast<NodeId>(scheduler_->snapshot().find(r)->placement.node);
          return std::find(it->second.begin(), it->second.end(), node) != it->second.end();
        });
    if (is_home) {
      it = homes_.erase(it);
      continue;
    }
    std::vector<bool> open(scheduler_->snapshot().size(), false);
    for (const NodeId node : it->second) open[node] = !fence_ || !fence_->nodes[node];
    const Result<GangDecision> decision =
        place_gang(*scheduler_, tree_, running.from.job.gang, &open);
    if (!decision || decision->outcome != Outcome::kPlaced) {
      ++it;
      continue;
    }
    for (const ReservationId r : running.reservations) (void)scheduler_->snapshot().release(r);
    book_.remove(running.from.queue, running.taken);
    running.reservations.clear();
    running.taken = size_of(*decision);
    book_.add(running.from.queue, running.taken);
    Action move{ActionKind::kMove, id, {}, 0};
    for (const Decision& member : decision->members) {
      (void)scheduler_->snapshot().commit(member.reservation);
      running.reservations.push_back(member.reservation);
      move.placements.push_back(member.placement);
    }
    actions.push_back(std::move(move));
    it = homes_.erase(it);
  }
}

}  // namespace aliquot::scheduler
