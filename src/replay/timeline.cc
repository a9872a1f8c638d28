#include "replay/timeline.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <queue>
#include <random>
#include <utility>

#include "replay/timeline_parts.h"
#include "scheduler/gang.h"
#include "scheduler/policies.h"
#include "scheduler/scheduler.h"

namespace aliquot::replay {
namespace {

using scheduler::NodeId;
using scheduler::Outcome;

// When a job is due to leave. Its pace may change before that: only its last version counts.
struct Leaving {
  std::int64_t time_s;
  std::size_t job;
  std::size_t version;
  auto operator<=>(const Leaving&) const = default;
};

struct Running {
  double left_s = 0;  // of its work
  double speed = 0;
  std::int64_t since_s = 0;  // both held since then
  double busy_milli = 0;     // at this speed
  std::size_t version = 0;
  std::vector<scheduler::ReservationId> reservations;
};

class Run {
 public:
  Run(const Cluster& cluster, const Trace& trace, const TimelinePlan& plan,
      std::unique_ptr<scheduler::Policy> policy, const scheduler::Workload& workload)
      : jobs_(trace.jobs),
        plan_(plan),
        scheduler_(cluster.nodes, std::move(policy)),
        tree_(scheduler::domain_tree_of(scheduler_.snapshot())),
        gauge_(scheduler_.snapshot(), workload),
        pace_(cluster, trace, plan.time),
        random_(plan.seed),
        running_(jobs_.size()) {
    timeline_.policy = scheduler_.policy().name();
    timeline_.outcomes.resize(jobs_.size());
    for (const model::NodeSpec& node : cluster.nodes)
      timeline_.total_milli += std::int64_t{node.gpu_count} * model::kWholeGpuMilli;
    if (jobs_.empty()) return;
    timeline_.first_arrival_s = now_ = jobs_.front().arrival_s;
    timeline_.last_arrival_s = jobs_.back().arrival_s;
  }

  Result<Timeline> run(const Progress& progress) {
    for (const Job& job : jobs_) {
      const Result<scheduler::ClassId> pod = scheduler_.classify(job.request);
      if (!pod) return Error{pod.error().code, job.request.name + ": " + pod.error().message};
      kinds_.push_back({*pod, job.pods});
    }
    const std::int64_t span = timeline_.last_arrival_s - timeline_.first_arrival_s;
    Sampler sampler(now_, span, plan_.samples);
    const auto look = [this] { return sample(); };
    for (;;) {
      drop_outdated();
      if (arrived_ == jobs_.size() && leaving_.empty()) break;
      const std::int64_t time = next_event();
      sampler.until(time, look);
      weigh(time);
      now_ = time;
      leave();
      arrive();
      if (progress) progress(finished_, jobs_.size());
    }
    for (std::size_t job = 0; job < jobs_.size(); ++job)
      if (timeline_.outcomes[job].fate == Fate::kWaiting)
        timeline_.outcomes[job].reason = why_not(job);
    timeline_.end_s = now_;
    timeline_.samples = sampler.finish(now_, look);
    finish_means(static_cast<double>(span));
    return std::move(timeline_);
  }

 private:
  void drop_outdated() {
    while (!leaving_.empty() && leaving_.top().version != running_[leaving_.top().job].version)
      leaving_.pop();
  }

  std::int64_t next_event() const {
    if (arrived_ == jobs_.size()) return leaving_.top().time_s;
    if (leaving_.empty()) return jobs_[arrived_].arrival_s;
    return std::min(leaving_.top().time_s, jobs_[arrived_].arrival_s);
  }

  Sample sample() const {
    return {0,
            gauge_.used_milli(),
            std::llround(busy_milli_),
            gauge_.fragmented_milli(),
            running_now_,
            static_cast<std::int64_t>(waiting_.size()),
            gauge_.node_percent()};
  }

  // Adds what held since the last event, as far as jobs were still arriving.
  void weigh(std::int64_t time) {
    const std::int64_t end = std::min(time, timeline_.last_arrival_s);
    if (end <= now_) return;
    const auto seconds = static_cast<double>(end - now_);
    timeline_.mean_used += seconds * static_cast<double>(gauge_.used_milli());
    timeline_.mean_busy += seconds * busy_milli_;
    timeline_.mean_fragmented += seconds * static_cast<double>(gauge_.fragmented_milli());
    timeline_.mean_waiting += seconds * static_cast<double>(waiting_.size());
  }

  void finish_means(double span) {
    const auto total = static_cast<double>(std::max<std::int64_t>(timeline_.total_milli, 1));
    span = std::max(span, 1.0);
    timeline_.mean_used /= span * total;
    timeline_.mean_busy /= span * total;
    timeline_.mean_fragmented /= span * total;
    timeline_.mean_waiting /= span;
    timeline_.peak_used = static_cast<double>(peak_milli_) / total;
  }

  void leave() {
    bool any = false;
    for (; !leaving_.empty() && leaving_.top().time_s == now_; drop_outdated()) {
      const std::size_t job = leaving_.top().job;
      leaving_.pop();
      end(job);
      any = true;
    }
    if (!any) return;
    settle();
    waiting_.retry([this](const JobKind& /*kind*/, std::size_t job) {
      return try_place(job, Fate::kDelayed) == Outcome::kPlaced;
    });
    settle();
  }

  void end(std::size_t job) {
    Running& running = running_[job];
    JobOutcome& outcome = timeline_.outcomes[job];
    // It was reserved by this very run, so there is nothing that could fail.
    for (const scheduler::ReservationId id : running.reservations)
      if (!scheduler_.snapshot().release(id)) std::abort();
    for (const model::Placement& placement : outcome.placements)
      gauge_.refresh(static_cast<NodeId>(placement.node));
    outcome.end_s = now_;
    outcome.held_gpu_s = held_milli(outcome) / 1000 * static_cast<double>(now_ - outcome.start_s);
    outcome.used_gpu_s = pace_.used_milli(job) / 1000 * jobs_[job].gpus() *
                         static_cast<double>(jobs_[job].duration_s);
    busy_milli_ -= running.busy_milli;
    ++running.version;
    pace_.end(job, touched_);
    --running_now_;
    if (running_now_ == 0) busy_milli_ = 0;  // what rounding left
    ++finished_;
  }

  // Of the GPUs, what nobody else could have: whole ones, or the larger part of compute and memory.
  double held_milli(const JobOutcome& outcome) const {
    double held = 0;
    for (const model::Placement& placement : outcome.placements) {
      const model::Bytes memory =
          scheduler_.snapshot().spec(static_cast<NodeId>(placement.node)).gpu.memory_bytes;
      for (const model::GpuPart& gpu : placement.gpus) {
        const double part = memory > 0 ? 1000.0 * static_cast<double>(gpu.memory_bytes) /
                                             static_cast<double>(memory)
                                       : 0;
        held += gpu.whole ? model::kWholeGpuMilli
                          : std::max(part, static_cast<double>(gpu.cores_milli));
      }
    }
    return held;
  }

  void arrive() {
    for (; arrived_ < jobs_.size() && jobs_[arrived_].arrival_s == now_; ++arrived_) {
      JobOutcome& outcome = timeline_.outcomes[arrived_];
      const Outcome answer = try_place(arrived_, Fate::kPlaced);
      if (answer == Outcome::kPlaced) continue;
      outcome.reason = why_not(arrived_);
      outcome.fate = answer == Outcome::kNever ? Fate::kRefused : Fate::kWaiting;
      if (outcome.fate == Fate::kRefused)
        ++finished_;
      else
        waiting_.add(kinds_[arrived_], arrived_);
    }
    settle();
  }

  Outcome try_place(std::size_t job, Fate fate) {
    std::vector<scheduler::Decision> decisions(1);
    if (jobs_[job].pods == 1) {
      decisions[0] = scheduler_.place(kinds_[job].pod);
      if (decisions[0].outcome != Outcome::kPlaced) return decisions[0].outcome;
    } else {
      Result<scheduler::GangDecision> gang = scheduler::place_gang(scheduler_, tree_, gang_of(job));
      if (!gang) std::abort();  // classified before, and it asks no level
      if (gang->outcome != Outcome::kPlaced) return gang->outcome;
      decisions = std::move(gang->members);
    }
    start(job, std::move(decisions), fate);
    return Outcome::kPlaced;
  }

  scheduler::Gang gang_of(std::size_t job) const {
    scheduler::Gang gang{jobs_[job].request.name, {{jobs_[job].request, jobs_[job].pods}}, {}, {}};
    if (scheduler_.policy().name() == "topology") gang.preferred_level = tree_.deepest();
    return gang;
  }

  void start(std::size_t job, std::vector<scheduler::Decision> decisions, Fate fate) {
    Running& running = running_[job];
    JobOutcome& outcome = timeline_.outcomes[job];
    for (scheduler::Decision& decision : decisions) {
      if (plan_.scatter) scatter(decision);
      if (!scheduler_.snapshot().commit(decision.reservation)) std::abort();  // just reserved
      running.reservations.push_back(decision.reservation);
      gauge_.refresh(static_cast<NodeId>(decision.placement.node));
      outcome.placements.push_back(std::move(decision.placement));
    }
    outcome.fate = fate;
    outcome.start_s = now_;
    running.left_s = static_cast<double>(jobs_[job].duration_s);
    running.since_s = now_;
    pace_.start(job, outcome.placements, touched_);
    peak_milli_ = std::max(peak_milli_, gauge_.used_milli());
    ++running_now_;
    ++changes_;
  }

  // The same number of whole GPUs on the same node, but any of them.
  void scatter(scheduler::Decision& decision) {
    scheduler::Snapshot& snapshot = scheduler_.snapshot();
    model::Placement& placement = decision.placement;
    if (placement.gpus.empty() || !std::ranges::all_of(placement.gpus, &model::GpuPart::whole))
      return;
    if (!snapshot.release(decision.reservation)) std::abort();
    const scheduler::NodeState state = snapshot.state(static_cast<NodeId>(placement.node));
    std::vector<int> idle;
    for (int gpu = 0; gpu < state.gpu_count; ++gpu)
      if (state.gpus[static_cast<std::size_t>(gpu)].idle) idle.push_back(gpu);
    for (model::GpuPart& part : placement.gpus) {
      const std::size_t at = random_() % idle.size();
      part.gpu = idle[at];
      idle.erase(idle.begin() + static_cast<std::ptrdiff_t>(at));
    }
    const Result<scheduler::ReservationId> again = snapshot.reserve(placement);
    if (!again) std::abort();  // as many as before, on the same node
    decision.reservation = *again;
  }

  // Gives all whose pace may have changed their new speed and their new time to leave.
  void settle() {
    for (const std::size_t job : touched_) {
      Running& running = running_[job];
      if (running.reservations.empty() || timeline_.outcomes[job].end_s != 0) continue;
      running.left_s -= running.speed * static_cast<double>(now_ - running.since_s);
      running.since_s = now_;
      const double speed = pace_.speed(job);
      if (speed == running.speed) continue;
      running.speed = speed;
      const double busy = speed * pace_.used_milli(job) * jobs_[job].gpus();
      busy_milli_ += busy - running.busy_milli;
      running.busy_milli = busy;
      ++running.version;
      // Whole seconds, upwards; what rounding left of a second is none.
      const double seconds = std::ceil(running.left_s / speed - 1e-6);
      leaving_.push(
          {now_ + std::max<std::int64_t>(1, std::llround(seconds)), job, running.version});
    }
    touched_.clear();
  }

  // Looks at every node: not again while nothing changed. (What left since shows in finished_.)
  std::string why_not(std::size_t job) {
    Told& told = told_[kinds_[job]];
    if (!told.text.empty() && told.changes == changes_ + finished_) return told.text;
    told.changes = changes_ + finished_;
    if (jobs_[job].pods == 1) return told.text = scheduler_.explain(kinds_[job].pod).text();
    const auto gang = scheduler::place_gang(scheduler_, tree_, gang_of(job));
    if (!gang || gang->outcome == Outcome::kPlaced) std::abort();  // it was refused just before
    // Without the gang's name, which is another for the next of its kind.
    return told.text = (gang->outcome == Outcome::kNever ? "never" : "not now") +
                       gang->why.substr(gang->why.find(": no domain"));
  }

  struct Told {
    std::string text;
    std::size_t changes = 0;
  };

  const std::vector<Job>& jobs_;
  const TimelinePlan& plan_;
  scheduler::Scheduler scheduler_;
  topology::DomainTree tree_;
  Gauge gauge_;
  Pace pace_;
  std::mt19937_64 random_;
  WaitingLine waiting_;
  std::priority_queue<Leaving, std::vector<Leaving>, std::greater<>> leaving_;
  std::vector<JobKind> kinds_;
  std::vector<Running> running_;
  std::vector<std::size_t> touched_;
  std::map<JobKind, Told> told_;
  Timeline timeline_;
  std::int64_t now_ = 0;
  std::int64_t running_now_ = 0;
  std::int64_t peak_milli_ = 0;
  double busy_milli_ = 0;
  std::size_t arrived_ = 0;
  std::size_t finished_ = 0;
  std::size_t changes_ = 0;
};

}  // namespace

std::string_view fate_name(Fate fate) {
  switch (fate) {
    case Fate::kPlaced:
      return "placed";
    case Fate::kDelayed:
      return "delayed";
    case Fate::kWaiting:
      return "waiting";
    case Fate::kRefused:
      return "never";
  }
  return "?";
}

Result<Timeline> run_timeline(const Cluster& cluster, const Trace& trace, const TimelinePlan& plan,
                              const Progress& progress) {
  std::vector<scheduler::WorkShape> seen;
  for (const Job& job : trace.jobs) {
    scheduler::WorkShape shape = work_shape_of(job.request, cluster.nodes);
    shape.count = job.pods;
    seen.push_back(std::move(shape));
  }
  const scheduler::PolicyInput input{scheduler::workload_of(seen), plan.seed,
                                     scheduler::capacity_of(cluster.nodes), plan.rollout,
                                     cluster.topologies};
  auto policy = scheduler::make_policy(plan.policy, input);
  if (!policy) return policy.error();
  return Run(cluster, trace, plan, *std::move(policy), input.workload).run(progress);
}

std::vector<std::int64_t> waits_of(const Trace& trace, const Timeline& timeline) {
  std::vector<std::int64_t> waits;
  for (std::size_t job = 0; job < trace.jobs.size(); ++job)
    if (timeline.outcomes[job].ran())
      waits.push_back(timeline.outcomes[job].start_s - trace.jobs[job].arrival_s);
  std::ranges::sort(waits);
  return waits;
}

}  // namespace aliquot::replay
