// Who has to stop so that a job can start. Questions are asked of the snapshot itself: victims are
// suspended, the job is placed and taken back, victims resume. Nothing of it remains.
#include <algorithm>
#include <tuple>
#include <utility>

#include "scheduler/planner.h"

namespace aliquot::scheduler {
namespace {

// Above so many eligible jobs pairs are not all tried; the answer is then one from which no victim
// can be left out, but not always the smallest.
constexpr std::size_t kMostForPairs = 48;

}  // namespace

void Planner::suspend(const std::vector<JobId>& jobs) {
  for (const JobId id : jobs)
    for (const ReservationId r : running_.at(id).reservations) scheduler_->snapshot().suspend(r);
}

void Planner::resume(const std::vector<JobId>& jobs) {
  for (const JobId id : jobs)
    for (const ReservationId r : running_.at(id).reservations) scheduler_->snapshot().resume(r);
}

// A job of the owner on nothing but the owner's nodes.
bool Planner::is_at_home(const Running& running) const {
  const std::string& tenant = running.from.job.tenant;
  const Snapshot& snapshot = scheduler_->snapshot();
  return !tenant.empty() && std::all_of(running.reservations.begin(), running.reservations.end(),
                                        [&](ReservationId r) {
                                          const auto node =
                                              static_cast<NodeId>(snapshot.find(r)->placement.node);
                                          return snapshot.spec(node).owner == tenant;
                                        });
}

// Strangers on the nodes of the job's tenant.
std::vector<JobId> Planner::owner_victims(const Job& job) const {
  std::vector<JobId> found;
  if (job.tenant.empty()) return found;
  const Snapshot& snapshot = scheduler_->snapshot();
  for (const auto& [id, running] : running_) {
    if (running.from.job.tenant == job.tenant) continue;
    const bool here =
        std::any_of(running.reservations.begin(), running.reservations.end(), [&](ReservationId r) {
          const auto node = static_cast<NodeId>(snapshot.find(r)->placement.node);
          return snapshot.spec(node).owner == job.tenant;
        });
    if (here) found.push_back(id);
  }
  return found;
}

// Jobs of lower priority in the same queue, and jobs of queues that borrow. Those that cost least
// come first: low priority, few GPUs, young.
std::vector<JobId> Planner::lesser_victims(const Waiting& w, Nanoseconds now) const {
  std::vector<JobId> found;
  for (const auto& [id, running] : running_) {
    const Job& job = running.from.job;
    if (!job.preemptible || now - running.started < options_.min_runtime || is_at_home(running))
      continue;
    const bool lower = running.from.queue == w.queue && job.priority < w.job.priority;
    const bool borrowed = running.from.queue != w.queue && book_.borrows(running.from.queue);
    if (lower || borrowed) found.push_back(id);
  }
  const auto cost = [&](JobId id) {
    const Running& r = running_.at(id);
    return std::tuple(r.from.job.priority, r.taken.gpu_milli, -r.started, id);
  };
  std::sort(found.begin(), found.end(), [&](JobId a, JobId b) { return cost(a) < cost(b); });
  return found;
}

// Each victim of another queue is taken only while that queue borrows, and only for a job that
// stays within its own queue's guarantee.
bool Planner::may_take(const Waiting& w, const std::vector<JobId>& gone,
                       const Resources& size) const {
  QueueBook after = book_;
  bool reclaims = false;
  for (const JobId id : gone) {
    const Running& victim = running_.at(id);
    if (victim.from.queue != w.queue) {
      reclaims = true;
      if (!after.borrows(victim.from.queue)) return false;
    }
    after.remove(victim.from.queue, victim.taken);
  }
  return after.within_limit(w.queue, size) && (!reclaims || after.within_guarantee(w.queue, size));
}

// The job's placement with `gone` away, still reserved; the caller undoes it before they resume.
std::optional<GangDecision> Planner::place_without(const Waiting& w, const std::vector<JobId>& gone,
                                                   bool by_owner) {
  std::vector<bool> open(scheduler_->snapshot().size(), true);
  if (by_owner)
    for (NodeId node = 0; node < open.size(); ++node)
      open[node] = scheduler_->snapshot().spec(node).owner == w.job.tenant;
  Result<GangDecision> decision = place_gang(*scheduler_, tree_, w.job.gang, &open);
  if (!decision || decision->outcome != Outcome::kPlaced) return std::nullopt;
  if (by_owner || may_take(w, gone, size_of(*decision))) return *std::move(decision);
  undo(*decision);
  return std::nullopt;
}

std::vector<JobId> Planner::smallest(const Waiting& w, const std::vector<JobId>& eligible,
                                     bool by_owner) {
  const auto enough = [&](const std::vector<JobId>& gone) {
    suspend(gone);
    const std::optional<GangDecision> placed = place_without(w, gone, by_owner);
    if (placed) undo(*placed);
    resume(gone);
    return placed.has_value();
  };
  for (const JobId one : eligible)
    if (enough({one})) return {one};
  if (eligible.size() <= kMostForPairs)
    for (std::size_t i = 0; i < eligible.size(); ++i)
      for (std::size_t j = i + 1; j < eligible.size(); ++j)
        if (enough({eligible[i], eligible[j]})) return {eligible[i], eligible[j]};
  // The cheapest that suffice together, then without those that turn out needless.
  std::vector<JobId> gone;
  bool suffices = false;
  for (std::size_t i = 0; i < eligible.size() && !suffices; ++i) {
    gone.push_back(eligible[i]);
    suffices = gone.size() > 2 && enough(gone);
  }
  if (!suffices) return {};
  for (std::size_t i = gone.size(); i-- > 0;) {
    std::vector<JobId> fewer = gone;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
    if (enough(fewer)) gone = std::move(fewer);
  }
  return gone;
}

bool Planner::try_displace(JobId id, Nanoseconds now, std::vector<Action>& actions) {
  if (stopped_now_.contains(id)) return false;
  const Waiting& w = waiting_.at(id);
  bool by_owner = true;
  std::vector<JobId> victims = smallest(w, owner_victims(w.job), by_owner);
  if (victims.empty()) {
    by_owner = false;
    victims = smallest(w, lesser_victims(w, now), by_owner);
  }
  if (victims.empty()) return false;
  suspend(victims);
  const std::optional<GangDecision> placed = place_without(w, victims, by_owner);
  if (!placed) {
    resume(victims);
    return false;
  }
  // Their room is the job's now: released without being resumed, in one step with its start.
  for (const JobId victim : victims) stop(victim, id, by_owner, actions);
  start(id, *placed, now, actions);
  return true;
}

// Precondition: the victim is suspended.
void Planner::stop(JobId victim, JobId for_job, bool by_owner, std::vector<Action>& actions) {
  Running running = std::move(running_.at(victim));
  running_.erase(victim);
  for (const ReservationId r : running.reservations) {
    if (by_owner)
      homes_[victim].push_back(static_cast<NodeId>(scheduler_->snapshot().find(r)->placement.node));
    scheduler_->snapshot().forget_suspended(r);
  }
  book_.remove(running.from.queue, running.taken);
  stopped_now_.insert(victim);
  waiting_.emplace(victim, std::move(running.from));
  actions.push_back({ActionKind::kStop, victim, {}, for_job});
}

}  // namespace aliquot::scheduler
