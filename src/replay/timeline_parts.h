// Of timeline.cc: the gauge of what is used, the queue of those that wait, and the sampler.
//
// Values of one run; the thread that runs it.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "replay/timeline.h"
#include "scheduler/fragmentation.h"
#include "scheduler/scheduler.h"

namespace aliquot::replay {

// What every node's GPUs hold and waste, kept up to date node by node: a look at the whole cluster
// for each event would cost more than the decisions.
class Gauge {
 public:
  // Borrows the snapshot.
  Gauge(const scheduler::Snapshot& snapshot, scheduler::Workload workload);

  void refresh(scheduler::NodeId node);

  std::int64_t used_milli() const { return used_; }
  std::int64_t fragmented_milli() const;
  std::vector<std::uint8_t> node_percent() const;

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

// Jobs of one kind fit or do not fit alike.
struct JobKind {
  scheduler::ClassId pod = 0;
  int pods = 1;
  auto operator<=>(const JobKind&) const = default;
};

// Those that wait, first come first. One refusal speaks for all of its kind until something leaves.
class WaitingLine {
 public:
  void add(const JobKind& kind, std::size_t job);
  std::size_t size() const { return size_; }

  // `place` says whether a job could be placed; those are taken out.
  void retry(const std::function<bool(const JobKind&, std::size_t)>& place);

 private:
  std::map<JobKind, std::deque<std::size_t>> lines_;
  std::size_t size_ = 0;
};

// Samples at even steps. The end is not known before, so there may come twice as many as wanted:
// then every other one goes and the step doubles.
class Sampler {
 public:
  Sampler(std::int64_t begin, std::int64_t span, std::size_t wanted);

  // All that are due before `time`, with what holds until then.
  void until(std::int64_t time, const std::function<Sample()>& look);
  // The end closes the list wherever the steps have come to.
  std::vector<Sample> finish(std::int64_t time, const std::function<Sample()>& look);

 private:
  void add(std::int64_t time, const std::function<Sample()>& look);

  std::size_t wanted_;
  std::int64_t next_;
  std::int64_t step_;
  std::vector<Sample> samples_;
};

}  // namespace aliquot::replay
