#include "scheduler/queues.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <tuple>
#include <utility>

namespace aliquot::scheduler {
namespace {

__extension__ using Wide = __int128;

std::array<std::int64_t, 4> amounts(const Resources& r) {
  return {r.gpu_milli, r.gpu_memory, r.cpu_milli, r.memory};
}

bool fits(const Resources& sum, const Resources& most) {
  const auto have = amounts(sum);
  const auto limit = amounts(most);
  for (std::size_t i = 0; i < have.size(); ++i)
    if (limit[i] >= 0 && have[i] > limit[i]) return false;
  return true;
}

Resources sum_of(Resources a, const Resources& b) { return a += b; }

}  // namespace

Resources& Resources::operator+=(const Resources& other) {
  gpu_milli += other.gpu_milli;
  gpu_memory += other.gpu_memory;
  cpu_milli += other.cpu_milli;
  memory += other.memory;
  return *this;
}

Resources& Resources::operator-=(const Resources& other) {
  gpu_milli -= other.gpu_milli;
  gpu_memory -= other.gpu_memory;
  cpu_milli -= other.cpu_milli;
  memory -= other.memory;
  return *this;
}

bool Resources::within(const Resources& other) const { return fits(*this, other); }

Resources capacity_of(const Snapshot& snapshot) {
  Resources sum;
  for (NodeId node = 0; node < snapshot.size(); ++node) {
    const NodeShape& shape = snapshot.shape(snapshot.shape_id(node));
    sum += {std::int64_t{shape.cores_capacity()} * shape.gpu_count,
            shape.memory_capacity() * shape.gpu_count, shape.cpu_milli,
            snapshot.spec(node).memory_bytes};
  }
  return sum;
}

Resources taken_by(const model::Placement& placement, const Snapshot& snapshot) {
  Resources sum{0, 0, placement.cpu_milli, placement.memory_bytes};
  const NodeShape& shape = snapshot.shape(snapshot.shape_id(static_cast<NodeId>(placement.node)));
  for (const model::GpuPart& part : placement.gpus) {
    const int slices = std::popcount(part.mig_mask);  // of 8
    sum.gpu_milli += part.cores_milli + model::kWholeGpuMilli * slices / 8;
    sum.gpu_memory += part.memory_bytes + shape.gpu.memory_bytes * slices / 8;
  }
  return sum;
}

Result<QueueBook> QueueBook::create(std::vector<QueueSpec> queues, const Resources& capacity) {
  QueueBook book;
  book.capacity_ = capacity;
  Resources guaranteed;
  for (QueueSpec& spec : queues) {
    const std::string what = "queue '" + spec.name + "': ";
    if (spec.weight < 1) return Error{Errc::kInvalid, what + "a weight is at least 1"};
    if (!spec.guarantee.within(spec.limit))
      return Error{Errc::kInvalid, what + "its guarantee is above its limit"};
    if (book.find(spec.name)) return Error{Errc::kInvalid, what + "named twice"};
    guaranteed += spec.guarantee;
    if (!guaranteed.within(capacity))
      return Error{Errc::kInvalid, what + "with it the guarantees pass what the cluster has"};
    book.queues_.push_back({std::move(spec), {}});
  }
  return book;
}

Result<QueueId> QueueBook::find(const std::string& name) const {
  for (QueueId id = 0; id < queues_.size(); ++id)
    if (queues_[id].spec.name == name) return id;
  return Error{Errc::kNotFound, "queue '" + name + "': there is none of that name"};
}

bool QueueBook::within_limit(QueueId id, const Resources& more) const {
  return fits(sum_of(queues_[id].used, more), queues_[id].spec.limit);
}

bool QueueBook::within_guarantee(QueueId id, const Resources& more) const {
  return fits(sum_of(queues_[id].used, more), queues_[id].spec.guarantee);
}

std::int64_t QueueBook::dominant_share(QueueId id) const {
  const auto used = amounts(queues_[id].used);
  const auto all = amounts(capacity_);
  std::int64_t share = 0;
  for (std::size_t i = 0; i < used.size(); ++i)
    // Bytes times a million do not fit 64 bits.
    if (all[i] > 0)
      share = std::max(share,
                       static_cast<std::int64_t>(static_cast<Wide>(used[i]) * 1'000'000 / all[i]));
  return share;
}

std::vector<QueueId> QueueBook::order() const {
  std::vector<QueueId> ids(queues_.size());
  std::iota(ids.begin(), ids.end(), QueueId{0});
  const auto rank = [&](QueueId id) {
    return std::tuple(borrows(id), dominant_share(id) / queues_[id].spec.weight, id);
  };
  std::sort(ids.begin(), ids.end(), [&](QueueId a, QueueId b) { return rank(a) < rank(b); });
  return ids;
}

}  // namespace aliquot::scheduler
