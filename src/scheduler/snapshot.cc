#include "scheduler/snapshot.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <numeric>
#include <string>
#include <utility>

namespace aliquot::scheduler {
namespace {

// The order in which GPUs stand in a grouped state: least room first.
bool less_room(const GpuState& a, const GpuState& b) {
  if (a.cores != b.cores) return a.cores < b.cores;
  return a < b;
}

Error exhausted(const model::NodeSpec& node, const std::string& what) {
  return {Errc::kExhausted, "reserve on " + node.name + ": " + what};
}

}  // namespace

Snapshot::Snapshot(std::vector<model::NodeSpec> nodes, StateParts parts) : parts_(parts) {
  nodes_.reserve(nodes.size());
  for (model::NodeSpec& spec : nodes) {
    [[maybe_unused]] const Result<NodeId> added = add_node(std::move(spec));
    assert(added);
  }
}

Result<NodeId> Snapshot::add_node(model::NodeSpec spec) {
  if (spec.gpu_count < 0 || spec.gpu_count > model::kMaxGpusPerNode)
    return Error{Errc::kInvalid, "add node " + spec.name + ": " + std::to_string(spec.gpu_count) +
                                     " GPUs, at most " + std::to_string(model::kMaxGpusPerNode)};
  Node node;
  node.shape = intern(shape_of(spec));
  node.free_cpu = spec.cpu_milli;
  node.free_memory = spec.memory_bytes;
  node.gpus.resize(static_cast<std::size_t>(spec.gpu_count));
  node.spec = std::move(spec);
  nodes_.push_back(std::move(node));
  const auto id = static_cast<NodeId>(nodes_.size() - 1);
  regroup(id);
  return id;
}

std::uint32_t Snapshot::intern(const NodeShape& shape) {
  const auto found = std::find(shapes_.begin(), shapes_.end(), shape);
  if (found != shapes_.end()) return static_cast<std::uint32_t>(found - shapes_.begin());
  shapes_.push_back(shape);
  return static_cast<std::uint32_t>(shapes_.size() - 1);
}

GpuState Snapshot::gpu_state(const Node& node, int i) const {
  const Gpu& gpu = node.gpus[static_cast<std::size_t>(i)];
  const NodeShape& shape = shapes_[node.shape];
  GpuState state;
  state.mig = (shape.mig_gpus >> i & 1) != 0;
  state.mig_used = gpu.mig_used;
  state.idle = gpu.parts == 0 && gpu.memory_foreign == 0;
  if (parts_.measured) {
    const int promised = gpu.whole ? model::kWholeGpuMilli : gpu.cores_taken;
    const auto fades = static_cast<int>(kMeasuredFades);
    const int busy = promised + (gpu.measured_milli - promised) * gpu.measured_weight / fades;
    state.busy = static_cast<std::uint8_t>((std::clamp(busy, 0, model::kWholeGpuMilli) + 50) / 100);
  }
  if (gpu.whole) return state;
  state.memory =
      std::max<Bytes>(0, shape.memory_capacity() - gpu.memory_taken - gpu.memory_foreign);
  state.cores = static_cast<std::int16_t>(shape.cores_capacity() - gpu.cores_taken);
  return state;
}

NodeState Snapshot::state(NodeId id) const {
  const Node& node = nodes_[id];
  NodeState state;
  state.shape = node.shape;
  state.cpu_milli = static_cast<std::int32_t>(node.free_cpu);
  state.gpu_count = static_cast<std::uint8_t>(node.gpus.size());
  for (int i = 0; i < state.gpu_count; ++i)
    state.gpus[static_cast<std::size_t>(i)] = gpu_state(node, i);
  if (parts_.kinds)
    for (std::size_t k = 1; k < node.kinds.size(); ++k)  // 0: without a GPU
      if (node.kinds[k] > 0) state.kinds = static_cast<std::uint8_t>(state.kinds | 1u << k);
  return state;
}

std::array<std::uint8_t, model::kMaxGpusPerNode> Snapshot::positions(NodeId id) const {
  std::array<std::uint8_t, model::kMaxGpusPerNode> order{};
  std::iota(order.begin(), order.end(), std::uint8_t{0});
  if (parts_.positions) return order;
  const NodeState now = state(id);
  std::stable_sort(
      order.begin(), order.begin() + now.gpu_count,
      [&](std::uint8_t a, std::uint8_t b) { return less_room(now.gpus[a], now.gpus[b]); });
  return order;
}

void Snapshot::regroup(NodeId id) {
  NodeState now = state(id);
  if (!parts_.positions) std::sort(now.gpus.begin(), now.gpus.begin() + now.gpu_count, less_room);
  nodes_[id].state = index_.move(id, nodes_[id].state, now);
  if (!index_.wants_compaction()) return;
  const std::vector<StateId> renamed = index_.compact();
  for (Node& node : nodes_)
    if (node.state != kNoState) node.state = renamed[node.state];
}

Status Snapshot::check_gpu(const Node& node, const model::GpuPart& part) const {
  const auto where = [&] { return "GPU " + std::to_string(part.gpu); };
  if (part.gpu < 0 || part.gpu >= static_cast<int>(node.gpus.size()))
    return Error{Errc::kInvalid, "reserve on " + node.spec.name + ": no " + where()};
  if (part.memory_bytes < 0 || part.cores_milli < 0)
    return Error{Errc::kInvalid, "reserve on " + node.spec.name + ": negative amount"};
  const GpuState gpu = gpu_state(node, part.gpu);
  if (gpu.mig != (part.mig_mask != 0))
    return exhausted(node.spec,
                     where() + (gpu.mig ? " serves MIG slices only" : " is not in MIG mode"));
  if (part.mig_mask != 0)
    return (gpu.mig_used & part.mig_mask) == 0
               ? Status{}
               : exhausted(node.spec, where() + ": MIG slices are taken");
  if (part.whole && !gpu.idle) return exhausted(node.spec, where() + " is in use");
  if (gpu.memory < part.memory_bytes)
    return exhausted(node.spec, where() + " has " + std::to_string(gpu.memory) + " bytes free");
  if (gpu.cores < part.cores_milli)
    return exhausted(node.spec, where() + " has " + std::to_string(gpu.cores) + " milli free");
  if (node.gpus[static_cast<std::size_t>(part.gpu)].whole)
    return exhausted(node.spec, where() + " is held whole");
  return {};
}

Status Snapshot::check(const model::Placement& placement) const {
  if (placement.node < 0 || static_cast<std::size_t>(placement.node) >= nodes_.size())
    return Error{Errc::kInvalid, "reserve: no node " + std::to_string(placement.node)};
  const Node& node = nodes_[static_cast<std::size_t>(placement.node)];
  if (placement.cpu_milli < 0 || placement.memory_bytes < 0 || placement.kind >= node.kinds.size())
    return Error{Errc::kInvalid, "reserve on " + node.spec.name + ": negative amount or no kind"};
  if (node.spec.cordoned) return exhausted(node.spec, "cordoned");
  if (node.pods >= node.spec.max_pods) return exhausted(node.spec, "no pod slot free");
  if (node.free_cpu < placement.cpu_milli)
    return exhausted(node.spec, std::to_string(node.free_cpu) + " milli CPU free");
  if (node.free_memory < placement.memory_bytes)
    return exhausted(node.spec, std::to_string(node.free_memory) + " bytes of memory free");
  return {};
}

Status Snapshot::take(const model::Placement& placement) {
  if (Status ok = check(placement); !ok) return ok;
  Node& node = nodes_[static_cast<std::size_t>(placement.node)];
  // Two parts may lie on one GPU, so each is checked after those before it are taken.
  const std::vector<Gpu> before = placement.gpus.size() > 1 ? node.gpus : std::vector<Gpu>{};
  for (std::size_t i = 0; i < placement.gpus.size(); ++i) {
    const model::GpuPart& part = placement.gpus[i];
    if (Status ok = check_gpu(node, part); !ok) {
      if (i > 0) node.gpus = before;
      return ok;
    }
    Gpu& gpu = node.gpus[static_cast<std::size_t>(part.gpu)];
    gpu.memory_taken += part.memory_bytes;
    gpu.cores_taken += part.cores_milli;
    gpu.mig_used |= part.mig_mask;
    gpu.whole = gpu.whole || part.whole;
    ++gpu.parts;
  }
  node.free_cpu -= placement.cpu_milli;
  node.free_memory -= placement.memory_bytes;
  ++node.pods;
  ++node.kinds[placement.kind];
  regroup(static_cast<NodeId>(placement.node));
  return {};
}

Result<ReservationId> Snapshot::reserve(const model::Placement& placement) {
  if (Status ok = take(placement); !ok) return ok.error();
  book_.emplace(next_, Reservation{placement, false});
  return next_++;
}

Status Snapshot::commit(ReservationId id) {
  const auto found = book_.find(id);
  if (found == book_.end())
    return Error{Errc::kNotFound, "commit: no reservation " + std::to_string(id)};
  found->second.committed = true;
  return {};
}

void Snapshot::give_back(const model::Placement& placement) {
  const auto id = static_cast<NodeId>(placement.node);
  Node& node = nodes_[id];
  for (const model::GpuPart& part : placement.gpus) {
    Gpu& gpu = node.gpus[static_cast<std::size_t>(part.gpu)];
    gpu.memory_taken -= part.memory_bytes;
    gpu.cores_taken -= part.cores_milli;
    gpu.mig_used = static_cast<std::uint8_t>(gpu.mig_used & ~part.mig_mask);
    if (part.whole) gpu.whole = false;
    --gpu.parts;
  }
  node.free_cpu += placement.cpu_milli;
  node.free_memory += placement.memory_bytes;
  --node.pods;
  --node.kinds[placement.kind];
  regroup(id);
}

Status Snapshot::release(ReservationId id) {
  const auto found = book_.find(id);
  if (found == book_.end())
    return Error{Errc::kNotFound, "release: no reservation " + std::to_string(id)};
  give_back(found->second.placement);
  book_.erase(found);
  return {};
}

void Snapshot::suspend(ReservationId id) { give_back(book_.at(id).placement); }

void Snapshot::resume(ReservationId id) {
  // Neither a cordon nor foreign memory that came since takes from what was placed before.
  const model::Placement& placement = book_.at(id).placement;
  Node& node = nodes_[static_cast<std::size_t>(placement.node)];
  const bool cordoned = std::exchange(node.spec.cordoned, false);
  std::vector<Gpu> gpus = node.gpus;
  for (Gpu& gpu : node.gpus) gpu.memory_foreign = 0;
  [[maybe_unused]] const Status taken = take(placement);
  assert(taken);
  node.spec.cordoned = cordoned;
  for (std::size_t i = 0; i < gpus.size(); ++i)
    node.gpus[i].memory_foreign = gpus[i].memory_foreign;
  regroup(static_cast<NodeId>(placement.node));
}

const Snapshot::Reservation* Snapshot::find(ReservationId id) const {
  const auto found = book_.find(id);
  return found == book_.end() ? nullptr : &found->second;
}

void Snapshot::set_measured_compute(NodeId id, int gpu, int milli, std::int64_t age_s) {
  Gpu& measured = nodes_[id].gpus[static_cast<std::size_t>(gpu)];
  measured.measured_milli = static_cast<std::int16_t>(std::clamp(milli, 0, model::kWholeGpuMilli));
  measured.measured_weight = static_cast<std::int16_t>(
      kMeasuredFades - std::clamp<std::int64_t>(age_s, 0, kMeasuredFades));
  if (parts_.measured) regroup(id);
}

void Snapshot::set_foreign_memory(NodeId node, int gpu, Bytes bytes) {
  nodes_[node].gpus[static_cast<std::size_t>(gpu)].memory_foreign = std::max<Bytes>(0, bytes);
  regroup(node);
}

std::uint64_t Snapshot::digest() const {
  std::uint64_t sum = nodes_.size();
  const auto mix = [](std::uint64_t h, std::uint64_t v) {
    h = (h ^ v) * 0x9e3779b97f4a7c15ULL;
    return h ^ (h >> 31);
  };
  for (NodeId id = 0; id < nodes_.size(); ++id) {
    std::uint64_t h = mix(hash_of(state(id)), static_cast<std::uint64_t>(nodes_[id].free_memory));
    h = mix(h,
            static_cast<std::uint64_t>(nodes_[id].pods) << 1 | (nodes_[id].spec.cordoned ? 1 : 0));
    for (const Gpu& gpu : nodes_[id].gpus) {
      h = mix(h, static_cast<std::uint64_t>(gpu.memory_taken));
      h = mix(h, static_cast<std::uint64_t>(gpu.memory_foreign));
      h = mix(h, static_cast<std::uint64_t>(gpu.cores_taken) << 16 | gpu.parts);
    }
    sum = mix(sum, h);
  }
  std::uint64_t book = 0;  // a sum, because the map has no order
  for (const auto& [id, r] : book_)
    book += mix(mix(id, r.committed ? 1 : 2), static_cast<std::uint64_t>(r.placement.node));
  return mix(sum, book);
}

}  // namespace aliquot::scheduler
