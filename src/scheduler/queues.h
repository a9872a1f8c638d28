// Queues: who may use how much, and whose turn it is.
//
// A queue is guaranteed an amount, may borrow idle capacity up to its limit, and shares what is
// borrowed by weight. Shares are dominant ones (DRF, Ghodsi et al., NSDI 2011): the largest of its
// parts of all GPU compute, GPU memory, CPU and memory, in 1/1,000,000.
//
// Pure; one loop owns a book.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/result.h"
#include "scheduler/snapshot.h"

namespace aliquot::scheduler {

struct Resources {
  std::int64_t gpu_milli = 0;
  Bytes gpu_memory = 0;
  std::int64_t cpu_milli = 0;
  Bytes memory = 0;
  bool operator==(const Resources&) const = default;

  Resources& operator+=(const Resources& other);
  Resources& operator-=(const Resources& other);
  // Whether each amount of this is at most that of `other`; negative amounts of `other` do not
  // bind.
  bool within(const Resources& other) const;
};

inline constexpr Resources kNoLimit{-1, -1, -1, -1};

// All that the snapshot's nodes have, overcommit included.
Resources capacity_of(const Snapshot& snapshot);
// What a placement takes. A MIG slice counts as its part of the GPU.
Resources taken_by(const model::Placement& placement, const Snapshot& snapshot);

struct QueueSpec {
  std::string name;
  Resources guarantee;         // 0: nothing is guaranteed
  Resources limit = kNoLimit;  // negative: not limited
  int weight = 1;
};

using QueueId = std::size_t;

class QueueBook {
 public:
  // Invalid where a weight is below 1, a guarantee is above its limit, names repeat, or all
  // guarantees together pass the capacity.
  static Result<QueueBook> create(std::vector<QueueSpec> queues, const Resources& capacity);

  std::size_t size() const { return queues_.size(); }
  const QueueSpec& spec(QueueId id) const { return queues_[id].spec; }
  const Resources& used(QueueId id) const { return queues_[id].used; }
  Result<QueueId> find(const std::string& name) const;

  void add(QueueId id, const Resources& amount) { queues_[id].used += amount; }
  void remove(QueueId id, const Resources& amount) { queues_[id].used -= amount; }

  bool within_limit(QueueId id, const Resources& more) const;
  // Whether the queue with `more` stays within its guarantee.
  bool within_guarantee(QueueId id, const Resources& more) const;
  // Whether it uses more than it is guaranteed, in anything.
  bool borrows(QueueId id) const { return !within_guarantee(id, {}); }

  std::int64_t dominant_share(QueueId id) const;
  // Whose turn: queues within their guarantee first, then by dominant share over weight; ties by
  // id.
  std::vector<QueueId> order() const;

 private:
  struct Queue {
    QueueSpec spec;
    Resources used;
  };
  std::vector<Queue> queues_;
  Resources capacity_;
};

}  // namespace aliquot::scheduler
