#include "replay/timeline.h"

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <functional>
#include <queue>
#include <utility>

#include "scheduler/fragmentation.h"
#include "scheduler/policies.h"
#include "scheduler/scheduler.h"

namespace aliquot::replay {
namespace {

using scheduler::ClassId;
using scheduler::NodeId;

// What every node's GPUs hold and waste, kept up to date node by node: a look at the whole cluster
// for each event would cost more than the decisions.
class Gauge {
 public:
  Gauge(const scheduler::Snapshot& snapshot, scheduler::Workload workload)
      : snapshot_(snapshot), fragmentation_(std::move(workload)), nodes_(snapshot.size()) {
    for (NodeId node = 0; node < nodes_.size(); ++node) refresh(node);
  }

  void refresh(NodeId id) {
    const scheduler::NodeState state = snapshot_.state(id);
    const scheduler::NodeShape& shape = snapshot_.shape(state.shape);
    Node now;
    for (int i = 0; i < state.gpu_count; ++i)
      now.used += model::kWholeGpuMilli - state.free_milli(i, shape);
    now.fragments = fragmentation_.of(scheduler::share_state_of({shape, state}), shape);
    used_ += now.used - nodes_[id].used;
    fragments_ += now.fragments - nodes_[id].fragments;
    nodes_[id] = now;
  }

  std::int64_t used_milli() const { return used_; }
  std::int64_t fragmented_milli() const {
    return fragmentation_.total() > 0 ? fragments_ / fragmentation_.total() : 0;
  }
  std::vector<std::uint8_t> node_percent() const {
    std::vector<std::uint8_t> percent;
    for (NodeId node = 0; node < nodes_.size(); ++node) {
      const std::int64_t all = std::int64_t{snapshot_.spec(node).gpu_count} * model::kWholeGpuMilli;
      percent.push_back(all == 0 ? kNoGpu
                                 : static_cast<std::uint8_t>(nodes_[node].used * 100 / all));
    }
    return percent;
  }

 private:
  struct Node {
    std::int64_t used = 0;
    std::int64_t fragments = 0;
  };
  const scheduler::Snapshot& snapshot_;
  scheduler::Fragmentation fragmentation_;
  std::vector<Node> nodes_;
  std::int64_t used_ = 0;
  std::int64_t fragments_ = 0;
};

// Those that wait, first come first. Jobs of one class fit or do not fit alike, so one refusal
// speaks for all of its class until something leaves.
class Queue {
 public:
  void add(ClassId demand, std::size_t job) {
    lines_[demand].push_back(job);
    ++size_;
  }
  std::size_t size() const { return size_; }

  // `place` says whether a job could be placed; those are taken out.
  void retry(const std::function<bool(ClassId, std::size_t)>& place) {
    using Head = std::pair<std::size_t, ClassId>;  // jobs are numbered by arrival
    std::priority_queue<Head, std::vector<Head>, std::greater<>> heads;
    for (const auto& [demand, line] : lines_)
      if (!line.empty()) heads.emplace(line.front(), demand);
    while (!heads.empty()) {
      const auto [job, demand] = heads.top();
      heads.pop();
      if (!place(demand, job)) continue;
      std::deque<std::size_t>& line = lines_[demand];
      line.pop_front();
      --size_;
      if (!line.empty()) heads.emplace(line.front(), demand);
    }
  }

 private:
  std::map<ClassId, std::deque<std::size_t>> lines_;
  std::size_t size_ = 0;
};

// Samples at even steps. The end is not known before, so there may come twice as many as wanted:
// then every other one goes and the step doubles.
class Sampler {
 public:
  Sampler(std::int64_t begin, std::int64_t span, std::size_t wanted)
      : wanted_(std::max<std::size_t>(wanted, 2)),
        next_(begin),
        step_(std::max<std::int64_t>(1, span / static_cast<std::int64_t>(wanted_))) {}

  // All that are due before `time`, with what holds until then.
  void until(std::int64_t time, const std::function<Sample()>& look) {
    while (next_ < time) {
      add(next_, look);
      next_ += step_;
    }
  }
  // The end closes the list wherever the steps have come to.
  std::vector<Sample> finish(std::int64_t time, const std::function<Sample()>& look) {
    samples_.push_back(look());
    samples_.back().time_s = time;
    return std::move(samples_);
  }

 private:
  void add(std::int64_t time, const std::function<Sample()>& look) {
    samples_.push_back(look());
    samples_.back().time_s = time;
    if (samples_.size() < 2 * wanted_) return;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < samples_.size(); i += 2)
      if (kept++ != i) samples_[kept - 1] = std::move(samples_[i]);
    samples_.resize(kept);
    step_ *= 2;
    next_ = samples_.back().time_s;  // + step_, by the caller
  }
  std::size_t wanted_;
  std::int64_t next_;
  std::int64_t step_;
  std::vector<Sample> samples_;
};

struct Leaving {
  std::int64_t time_s;
  std::size_t job;
  auto operator<=>(const Leaving&) const = default;
};

class Run {
 public:
  Run(const Cluster& cluster, const Trace& trace, std::unique_ptr<scheduler::Policy> policy,
      const scheduler::Workload& workload)
      : jobs_(trace.jobs),
        scheduler_(cluster.nodes, std::move(policy)),
        gauge_(scheduler_.snapshot(), workload),
        reservations_(jobs_.size()) {
    timeline_.policy = scheduler_.policy().name();
    timeline_.outcomes.resize(jobs_.size());
    for (const model::NodeSpec& node : cluster.nodes)
      timeline_.total_milli += std::int64_t{node.gpu_count} * model::kWholeGpuMilli;
    if (jobs_.empty()) return;
    timeline_.first_arrival_s = now_ = jobs_.front().arrival_s;
    timeline_.last_arrival_s = jobs_.back().arrival_s;
  }

  Result<Timeline> run(std::size_t samples, const Progress& progress) {
    for (const Job& job : jobs_) {
      const Result<ClassId> demand = scheduler_.classify(job.request);
      if (!demand)
        return Error{demand.error().code, job.request.name + ": " + demand.error().message};
      classes_.push_back(*demand);
    }
    const std::int64_t span = timeline_.last_arrival_s - timeline_.first_arrival_s;
    Sampler sampler(now_, span, samples);
    const auto look = [this] { return sample(); };
    while (arrived_ < jobs_.size() || !leaving_.empty()) {
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
        timeline_.outcomes[job].reason = scheduler_.explain(classes_[job]).text();
    timeline_.end_s = now_;
    timeline_.samples = sampler.finish(now_, look);
    finish_means(static_cast<double>(span));
    return std::move(timeline_);
  }

 private:
  std::int64_t next_event() const {
    if (arrived_ == jobs_.size()) return leaving_.top().time_s;
    if (leaving_.empty()) return jobs_[arrived_].arrival_s;
    return std::min(leaving_.top().time_s, jobs_[arrived_].arrival_s);
  }

  Sample sample() const {
    return {0,
            gauge_.used_milli(),
            gauge_.fragmented_milli(),
            running_,
            static_cast<std::int64_t>(queue_.size()),
            gauge_.node_percent()};
  }

  // Adds what held since the last event, as far as jobs were still arriving.
  void weigh(std::int64_t time) {
    const std::int64_t end = std::min(time, timeline_.last_arrival_s);
    if (end <= now_) return;
    const auto seconds = static_cast<double>(end - now_);
    timeline_.mean_used += seconds * static_cast<double>(gauge_.used_milli());
    timeline_.mean_fragmented += seconds * static_cast<double>(gauge_.fragmented_milli());
    timeline_.mean_waiting += seconds * static_cast<double>(queue_.size());
  }

  void finish_means(double span) {
    const auto total = static_cast<double>(std::max<std::int64_t>(timeline_.total_milli, 1));
    span = std::max(span, 1.0);
    timeline_.mean_used /= span * total;
    timeline_.mean_fragmented /= span * total;
    timeline_.mean_waiting /= span;
    timeline_.peak_used = static_cast<double>(peak_milli_) / total;
  }

  void leave() {
    bool any = false;
    while (!leaving_.empty() && leaving_.top().time_s == now_) {
      const std::size_t job = leaving_.top().job;
      leaving_.pop();
      // It was reserved by this very run, so there is nothing that could fail.
      if (!scheduler_.snapshot().release(reservations_[job])) std::abort();
      gauge_.refresh(static_cast<NodeId>(timeline_.outcomes[job].placement.node));
      --running_;
      ++finished_;
      any = true;
    }
    if (any)
      queue_.retry([this](ClassId demand, std::size_t job) {
        return try_place(demand, job, Fate::kDelayed) == scheduler::Outcome::kPlaced;
      });
  }

  void arrive() {
    for (; arrived_ < jobs_.size() && jobs_[arrived_].arrival_s == now_; ++arrived_) {
      const ClassId demand = classes_[arrived_];
      JobOutcome& outcome = timeline_.outcomes[arrived_];
      const scheduler::Outcome answer = try_place(demand, arrived_, Fate::kPlaced);
      if (answer == scheduler::Outcome::kPlaced) continue;
      outcome.reason = why_not(demand);
      outcome.fate = answer == scheduler::Outcome::kNever ? Fate::kRefused : Fate::kWaiting;
      if (outcome.fate == Fate::kRefused)
        ++finished_;
      else
        queue_.add(demand, arrived_);
    }
  }

  scheduler::Outcome try_place(ClassId demand, std::size_t job, Fate fate) {
    const scheduler::Decision decision = scheduler_.place(demand);
    if (decision.outcome != scheduler::Outcome::kPlaced) return decision.outcome;
    if (!scheduler_.snapshot().commit(decision.reservation)) std::abort();  // just reserved
    reservations_[job] = decision.reservation;
    JobOutcome& outcome = timeline_.outcomes[job];
    outcome.fate = fate;
    outcome.start_s = now_;
    outcome.end_s = now_ + jobs_[job].duration_s;
    outcome.placement = decision.placement;
    leaving_.push({outcome.end_s, job});
    gauge_.refresh(static_cast<NodeId>(decision.placement.node));
    peak_milli_ = std::max(peak_milli_, gauge_.used_milli());
    ++running_;
    ++changes_;
    return decision.outcome;
  }

  // Looks at every node: not again while nothing changed. (What left since shows in finished_.)
  std::string why_not(ClassId demand) {
    Told& told = told_[demand];
    if (told.text.empty() || told.changes != changes_ + finished_)
      told = {scheduler_.explain(demand).text(), changes_ + finished_};
    return told.text;
  }

  struct Told {
    std::string text;
    std::size_t changes = 0;
  };

  const std::vector<Job>& jobs_;
  scheduler::Scheduler scheduler_;
  Gauge gauge_;
  Queue queue_;
  std::priority_queue<Leaving, std::vector<Leaving>, std::greater<>> leaving_;
  std::vector<ClassId> classes_;
  std::vector<scheduler::ReservationId> reservations_;
  std::map<ClassId, Told> told_;
  Timeline timeline_;
  std::int64_t now_ = 0;
  std::int64_t running_ = 0;
  std::int64_t peak_milli_ = 0;
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
  for (const Job& job : trace.jobs) seen.push_back(work_shape_of(job.request, cluster.nodes));
  const scheduler::PolicyInput input{scheduler::workload_of(seen), plan.seed,
                                     scheduler::capacity_of(cluster.nodes), plan.rollout,
                                     cluster.topologies};
  auto policy = scheduler::make_policy(plan.policy, input);
  if (!policy) return policy.error();
  return Run(cluster, trace, *std::move(policy), input.workload).run(plan.samples, progress);
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
