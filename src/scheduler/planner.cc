#include "scheduler/planner.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace aliquot::scheduler {

Planner::Planner(Scheduler& scheduler, QueueBook book, PlannerOptions options)
    : scheduler_(&scheduler),
      tree_(domain_tree_of(scheduler.snapshot())),
      book_(std::move(book)),
      options_(options) {}

Result<Planner> Planner::create(Scheduler& scheduler, std::vector<QueueSpec> queues,
                                PlannerOptions options) {
  Result<QueueBook> book = QueueBook::create(std::move(queues), capacity_of(scheduler.snapshot()));
  if (!book) return book.error();
  return Planner(scheduler, *std::move(book), options);
}

Status Planner::submit(Job job, Nanoseconds now) {
  const std::string what = "job " + std::to_string(job.id) + ": ";
  if (waiting_.contains(job.id) || running_.contains(job.id))
    return Error{Errc::kInvalid, what + "its id is in use"};
  const Result<QueueId> queue = book_.find(job.queue);
  if (!queue) return Error{queue.error().code, what + queue.error().message};
  if (job.gang.members.empty()) return Error{Errc::kInvalid, what + "asks for nothing"};
  for (const GangMember& member : job.gang.members)
    if (const auto id = scheduler_->classify(member.request); !id)
      return Error{id.error().code, what + id.error().message};
  for (const auto& level : {job.gang.required_level, job.gang.preferred_level})
    if (level && *level > tree_.deepest())
      return Error{Errc::kInvalid, what + "names level " + std::to_string(*level) +
                                       ", the nodes name " + std::to_string(tree_.deepest())};
  const JobId id = job.id;
  waiting_.emplace(id, Waiting{std::move(job), *queue, now, {}});
  return {};
}

Status Planner::finish(JobId id) {
  if (fence_ && fence_->job == id) fence_.reset();
  homes_.erase(id);
  if (waiting_.erase(id) > 0) return {};
  const auto found = running_.find(id);
  if (found == running_.end())
    return Error{Errc::kNotFound, "job " + std::to_string(id) + ": neither waits nor runs"};
  for (const ReservationId r : found->second.reservations) (void)scheduler_->snapshot().release(r);
  book_.remove(found->second.from.queue, found->second.taken);
  running_.erase(found);
  return {};
}

bool Planner::is_waiting(JobId id) const { return waiting_.contains(id); }

std::string Planner::why_waiting(JobId id) const {
  const auto found = waiting_.find(id);
  return found == waiting_.end() ? std::string() : found->second.why;
}

std::vector<Action> Planner::step(Nanoseconds now) {
  std::vector<Action> actions;
  std::set<JobId> tried;
  stopped_now_.clear();
  for (bool progress = true; progress;) {
    progress = false;
    bool fenced = false;  // whether a job before this one in turn is blocked
    for (const JobId id : turn_order()) {
      if (fence_ && fence_->job == id && tried.contains(id)) fenced = true;
      if (tried.contains(id)) continue;
      if (try_start(id, now, fenced, actions) || try_displace(id, now, actions)) {
        progress = true;  // shares have changed, and with them whose turn it is
        break;
      }
      tried.insert(id);
      if (fenced) continue;
      if (!fence_ || fence_->job != id) raise_fence(id);
      fenced = fence_.has_value();
    }
  }
  bring_home(actions);
  return actions;
}

std::vector<JobId> Planner::turn_order() const {
  std::vector<std::size_t> turn(book_.size());
  const std::vector<QueueId> order = book_.order();
  for (std::size_t i = 0; i < order.size(); ++i) turn[order[i]] = i;
  std::vector<JobId> ids;
  for (const auto& [id, w] : waiting_) ids.push_back(id);
  const auto rank = [&](JobId id) {
    const Waiting& w = waiting_.at(id);
    return std::tuple(turn[w.queue], -w.job.priority, w.submitted, id);
  };
  std::sort(ids.begin(), ids.end(), [&](JobId a, JobId b) { return rank(a) < rank(b); });
  return ids;
}

// Where the job may go: not on the fenced nodes, unless it is gone before the head's turn.
std::vector<bool> Planner::open_to(const Job& job, Nanoseconds now, bool fenced) const {
  std::vector<bool> open(scheduler_->snapshot().size(), true);
  if (!fenced || !fence_ || fence_->job == job.id) return open;
  if (job.max_runtime && fence_->until && now + *job.max_runtime <= *fence_->until) return open;
  for (std::size_t node = 0; node < open.size(); ++node) open[node] = !fence_->nodes[node];
  return open;
}

bool Planner::try_start(JobId id, Nanoseconds now, bool fenced, std::vector<Action>& actions) {
  Waiting& w = waiting_.at(id);
  const std::vector<bool> open = open_to(w.job, now, fenced);
  const Result<GangDecision> decision = place_gang(*scheduler_, tree_, w.job.gang, &open);
  if (!decision) {
    w.why = decision.error().message;
    return false;
  }
  if (decision->outcome != Outcome::kPlaced) {
    w.why = decision->why;
    return false;
  }
  if (!book_.within_limit(w.queue, size_of(*decision))) {
    undo(*decision);
    w.why = "queue '" + w.job.queue + "' is at its limit";
    return false;
  }
  start(id, *decision, now, actions);
  return true;
}

void Planner::start(JobId id, const GangDecision& decision, Nanoseconds now,
                    std::vector<Action>& actions) {
  Running running{std::move(waiting_.at(id)), now, {}, size_of(decision)};
  running.from.why.clear();
  waiting_.erase(id);
  Action action{ActionKind::kStart, id, {}, 0};
  for (const Decision& member : decision.members) {
    (void)scheduler_->snapshot().commit(member.reservation);
    running.reservations.push_back(member.reservation);
    action.placements.push_back(member.placement);
  }
  book_.add(running.from.queue, running.taken);
  if (fence_ && fence_->job == id) fence_.reset();
  running_.emplace(id, std::move(running));
  actions.push_back(std::move(action));
}

Resources Planner::size_of(const GangDecision& decision) const {
  Resources sum;
  for (const Decision& member : decision.members)
    sum += taken_by(member.placement, scheduler_->snapshot());
  return sum;
}

void Planner::undo(const GangDecision& decision) {
  for (const Decision& member : decision.members)
    (void)scheduler_->snapshot().release(member.reservation);
}

}  // namespace aliquot::scheduler
