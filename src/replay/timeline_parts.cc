#include "replay/timeline_parts.h"

#include <algorithm>
#include <queue>

namespace aliquot::replay {

using scheduler::NodeId;

Gauge::Gauge(const scheduler::Snapshot& snapshot, scheduler::Workload workload)
    : snapshot_(snapshot), fragmentation_(std::move(workload)), nodes_(snapshot.size()) {
  for (NodeId node = 0; node < nodes_.size(); ++node) refresh(node);
}

void Gauge::refresh(NodeId id) {
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

std::int64_t Gauge::fragmented_milli() const {
  return fragmentation_.total() > 0 ? fragments_ / fragmentation_.total() : 0;
}

std::vector<std::uint8_t> Gauge::node_percent() const {
  std::vector<std::uint8_t> percent;
  for (NodeId node = 0; node < nodes_.size(); ++node) {
    const std::int64_t all = std::int64_t{snapshot_.spec(node).gpu_count} * model::kWholeGpuMilli;
    percent.push_back(all == 0 ? kNoGpu : static_cast<std::uint8_t>(nodes_[node].used * 100 / all));
  }
  return percent;
}

void WaitingLine::add(const JobKind& kind, std::size_t job) {
  lines_[kind].push_back(job);
  ++size_;
}

void WaitingLine::retry(const std::function<bool(const JobKind&, std::size_t)>& place) {
  using Head = std::pair<std::size_t, JobKind>;  // jobs are numbered by arrival
  std::priority_queue<Head, std::vector<Head>, std::greater<>> heads;
  for (const auto& [kind, line] : lines_)
    if (!line.empty()) heads.emplace(line.front(), kind);
  while (!heads.empty()) {
    const auto [job, kind] = heads.top();
    heads.pop();
    if (!place(kind, job)) continue;
    std::deque<std::size_t>& line = lines_[kind];
    line.pop_front();
    --size_;
    if (!line.empty()) heads.emplace(line.front(), kind);
  }
}

Sampler::Sampler(std::int64_t begin, std::int64_t span, std::size_t wanted)
    : wanted_(std::max<std::size_t>(wanted, 2)),
      next_(begin),
      step_(std::max<std::int64_t>(1, span / static_cast<std::int64_t>(wanted_))) {}

void Sampler::until(std::int64_t time, const std::function<Sample()>& look) {
  while (next_ < time) {
    add(next_, look);
    next_ += step_;
  }
}

std::vector<Sample> Sampler::finish(std::int64_t time, const std::function<Sample()>& look) {
  samples_.push_back(look());
  samples_.back().time_s = time;
  return std::move(samples_);
}

void Sampler::add(std::int64_t time, const std::function<Sample()>& look) {
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

}  // namespace aliquot::replay
