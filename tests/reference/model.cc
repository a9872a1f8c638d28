#include "reference/model.h"

#include <algorithm>
#include <utility>

namespace aliquot::reference {
namespace {

constexpr Bytes kAlignment = 512;
constexpr Bytes kSmall = 1u << 20;  // from here on an allocation has granules of its own
constexpr Bytes kChunk = 32u << 20;
constexpr Bytes kMostBytes = Bytes{1} << 44;

std::shared_ptr<Contents> unknown(Bytes bytes) {
  return std::make_shared<Contents>(std::min(bytes, kSeen), std::int16_t{-1});
}

}  // namespace

Bytes round_up(Bytes bytes, Bytes to) { return (bytes + to - 1) / to * to; }

std::optional<Bytes> Range::take(Bytes bytes) {
  Bytes at = 0;
  for (const auto& [start, size] : used_) {
    if (at + bytes <= start) break;
    at = start + size;
  }
  if (at + bytes > bytes_) return std::nullopt;
  used_[at] = bytes;
  return at;
}

Model::Model(std::vector<Bytes> totals, Bytes context_bytes)
    : total_(std::move(totals)), used_(total_.size(), 0), context_bytes_(context_bytes) {}

bool Model::take(unsigned gpu, Bytes bytes) {
  if (bytes > total_[gpu] - used_[gpu]) return false;
  used_[gpu] += bytes;
  return true;
}

Id Model::add(Memory memory) {
  if (memory.contents == nullptr) memory.contents = unknown(memory.bytes);
  memories_[++last_] = std::move(memory);
  return last_;
}

CUresult Model::open_context(unsigned gpu, Id& id) {
  if (!take(gpu, context_bytes_)) return CUDA_ERROR_OUT_OF_MEMORY;
  contexts_[id = ++last_] = gpu;
  return CUDA_SUCCESS;
}

void Model::close_context(Id id) {
  std::vector<Id> mine;
  for (const auto& [name, memory] : memories_)
    if (memory.context == id) mine.push_back(name);
  for (const Id name : mine) release(name);
  give(contexts_.at(id), context_bytes_);
  contexts_.erase(id);
}

CUresult Model::linear(Id context, Bytes bytes, Id& id) {
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  const unsigned gpu = gpu_of(context);
  Memory memory{Kind::kLinear, gpu, bytes, context};
  const bool small = bytes < kSmall;
  const Bytes needed = small ? round_up(bytes, kAlignment) : round_up(bytes, kGranule);
  for (auto& [name, block] : blocks_) {
    if (!small || memory.block >= 0) break;
    if (block.context != context || block.range.bytes() != kGranule || !block.held) continue;
    if (const auto at = block.range.take(needed)) {
      memory.block = name;
      memory.at = *at;
    }
  }
  if (memory.block < 0) {
    const Bytes whole = small ? kGranule : needed;
    if (!take(gpu, whole)) return CUDA_ERROR_OUT_OF_MEMORY;
    // One that is not small fills its block, so that nothing else comes into it.
    Block block{gpu, context, Range(whole)};
    const auto at = block.range.take(needed);
    if (!at) return CUDA_ERROR_OUT_OF_MEMORY;
    memory.at = *at;
    blocks_.emplace(memory.block = ++last_, std::move(block));
  }
  id = add(std::move(memory));
  return CUDA_SUCCESS;
}

CUresult Model::managed(Id context, Bytes bytes, Id& id) {
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  Memory memory{Kind::kManaged, gpu_of(context), bytes, context};
  // What the GPU has no room for stays with the host.
  const Bytes whole = round_up(bytes, kGranule);
  if (take(memory.gpu, whole)) memory.charged = whole;
  id = add(std::move(memory));
  return CUDA_SUCCESS;
}

CUresult Model::array(Id context, Bytes bytes, Id& id) {
  Memory memory{Kind::kArray, gpu_of(context), bytes, context, round_up(bytes, kGranule)};
  if (!take(memory.gpu, memory.charged)) return CUDA_ERROR_OUT_OF_MEMORY;
  id = add(std::move(memory));
  return CUDA_SUCCESS;
}

CUresult Model::physical(unsigned gpu, Bytes bytes, Id& id) {
  if (bytes == 0 || bytes % kGranule != 0) return CUDA_ERROR_INVALID_VALUE;
  if (!take(gpu, bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  Memory memory{Kind::kPhysical, gpu, bytes, -1, bytes};
  memory.references = 1;
  id = add(std::move(memory));
  return CUDA_SUCCESS;
}

CUresult Model::graph(unsigned gpu, Bytes bytes, Id& id) {
  const Bytes whole = round_up(bytes, kGranule);
  if (!take(gpu, whole)) return CUDA_ERROR_OUT_OF_MEMORY;
  id = add({Kind::kGraph, gpu, bytes, -1, whole});
  return CUDA_SUCCESS;
}

Id Model::host(Id context, Bytes bytes) { return add({Kind::kHost, 0, bytes, context}); }

void Model::let_go(Id name) {
  const Block& block = blocks_.at(name);
  if (block.held || block.others > 0) return;
  give(block.gpu, block.range.bytes());
  blocks_.erase(name);
}

void Model::release(Id id) {
  const Memory memory = memories_.at(id);
  if (memory.kind == Kind::kPhysical && --memories_.at(id).references > 0) return;
  memories_.erase(id);
  if (memory.block >= 0) {
    Block& block = blocks_.at(memory.block);
    block.range.give(memory.at);
    if (block.range.is_empty()) block.held = false;
    return let_go(memory.block);
  }
  if (memory.pool < 0) return give(memory.gpu, memory.charged);
  Pool& pool = pools_.at(memory.pool);
  for (auto& [name, range] : pool.chunks)
    if (name == memory.chunk) range.give(memory.at);
  pool.used -= round_up(memory.bytes, kAlignment);
  trim(memory.pool, pool.threshold);
  if (pool.destroyed && pool.used == 0) pools_.erase(memory.pool);
}

Id Model::make_pool(unsigned gpu, bool is_default) {
  pools_[++last_] = {gpu, is_default};
  return last_;
}

void Model::destroy_pool(Id id) {
  Pool& pool = pools_.at(id);
  pool.threshold = 0;
  pool.destroyed = true;
  trim(id, 0);
  if (pool.used == 0) pools_.erase(id);
}

void Model::trim(Id id, Bytes keep) {
  Pool& pool = pools_.at(id);
  for (std::size_t i = 0; i < pool.chunks.size() && pool.reserved > keep;) {
    if (!pool.chunks[i].second.is_empty()) {
      ++i;
      continue;
    }
    const Bytes bytes = pool.chunks[i].second.bytes();
    give(pool.gpu, bytes);
    pool.reserved -= bytes;
    pool.chunks.erase(pool.chunks.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

bool Model::take_chunk(Pool& pool, Bytes bytes) {
  if (!take(pool.gpu, bytes)) return false;
  pool.chunks.emplace_back(++last_, Range(bytes));
  pool.reserved += bytes;
  pool.reserved_high = std::max(pool.reserved_high, pool.reserved);
  return true;
}

bool Model::cut(Id name, Bytes bytes, Id& id) {
  Pool& pool = pools_.at(name);
  for (auto& [chunk, range] : pool.chunks) {
    const auto at = range.take(round_up(bytes, kAlignment));
    if (!at) continue;
    Memory memory{Kind::kPool, pool.gpu, bytes};
    memory.pool = name;
    memory.chunk = chunk;
    memory.at = *at;
    pool.used += round_up(bytes, kAlignment);
    pool.used_high = std::max(pool.used_high, pool.used);
    id = add(std::move(memory));
    return true;
  }
  return false;
}

CUresult Model::from_pool(Id name, Bytes bytes, Id& id) {
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (bytes > kMostBytes) return CUDA_ERROR_OUT_OF_MEMORY;  // what no GPU has: nothing is trimmed
  if (cut(name, bytes, id)) return CUDA_SUCCESS;
  Pool& pool = pools_.at(name);
  const Bytes needed = round_up(bytes, kGranule);
  bool taken = take_chunk(pool, std::max(needed, kChunk)) || take_chunk(pool, needed);
  if (!taken) {
    // What the GPU's pools keep without need.
    for (auto& [other, candidate] : pools_)
      if (candidate.gpu == pool.gpu) trim(other, 0);
    taken = take_chunk(pool, needed);
  }
  return taken && cut(name, bytes, id) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

std::vector<Id> Model::all_of(const std::set<Kind>& kinds) const {
  std::vector<Id> found;
  for (const auto& [name, memory] : memories_)
    if (kinds.contains(memory.kind)) found.push_back(name);
  return found;
}

std::vector<Id> Model::live_pools() const {
  std::vector<Id> found;
  for (const auto& [name, pool] : pools_)
    if (!pool.destroyed) found.push_back(name);
  return found;
}

Id Model::share(Id id) { return memories_.at(id).block; }
void Model::open_shared(Id share) { ++blocks_.at(share).others; }
void Model::close_shared(Id share) {
  --blocks_.at(share).others;
  let_go(share);
}

}  // namespace aliquot::reference
