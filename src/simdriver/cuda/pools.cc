#include "simdriver/cuda/pools.h"

#include <algorithm>
#include <utility>

#include "simdriver/cuda/allocate.h"

namespace aliquot::simdriver {
namespace {

// What a pool takes at a time (observed: the reserved bytes of a default pool grow by 32 MiB), and
// less where that does not fit.
constexpr std::uint64_t kChunkBytes = 32u << 20;
constexpr std::uint64_t kAlignment = 512;

std::uint64_t round_up(std::uint64_t bytes, std::uint64_t to) { return (bytes + to - 1) / to * to; }

bool exportable(const Pool& pool) { return pool.properties.handle_types != 0; }

// A chunk in a file of its own, which another process can be given.
CUresult take_block(Pool& pool, std::uint64_t bytes, PoolChunk& chunk) {
  Answer answer;
  const CUresult result = library().ask(
      Op::kBlockCreate, MemoryRequest{pool.device->server, MemoryKind::kPool, bytes}, &answer);
  if (result != CUDA_SUCCESS) return result;
  const auto reply = answer.as<BlockReply>();
  if (!reply || answer.fds.empty()) return CUDA_ERROR_SYSTEM_DRIVER_MISMATCH;
  chunk.key = reply->key;
  chunk.file = std::make_shared<MemoryFile>(std::move(answer.fds[0]), MemoryFile::Sharing::kShared,
                                            library().memory().commit());
  return CUDA_SUCCESS;
}

CUresult take_chunk(Pool& pool, std::uint64_t bytes) {
  Memory& memory = library().memory();
  PoolChunk chunk{0, bytes, FreeRanges(0, 0), {}, nullptr, 0};
  chunk.base = memory.reserve(bytes, kGranuleBytes);
  if (chunk.base == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult result = CUDA_SUCCESS;
  if (pool.device != nullptr && exportable(pool)) {
    result = take_block(pool, bytes, chunk);
  } else {
    chunk.file = memory.arena();
    chunk.file_offset = memory.arena_offset(chunk.base);
    if (pool.device != nullptr) {
      result = library().ask(Op::kMemoryTake,
                             MemoryRequest{pool.device->server, MemoryKind::kPool, bytes});
    }
  }
  if (result != CUDA_SUCCESS) {
    memory.unreserve(chunk.base, bytes);
    return result;
  }
  chunk.free = FreeRanges(chunk.base, bytes);
  pool.reserved += bytes;
  pool.reserved_high = std::max(pool.reserved_high, pool.reserved);
  pool.chunks.push_back(std::move(chunk));
  return CUDA_SUCCESS;
}

void give_chunk(Pool& pool, PoolChunk& chunk) {
  Memory& memory = library().memory();
  if (chunk.key.block != 0) {
    library().ask(Op::kBlockRelease, BlockId{chunk.key.block});
  } else {
    memory.arena()->punch(chunk.file_offset, chunk.bytes);
    if (pool.device != nullptr) {
      library().ask(Op::kMemoryGive,
                    MemoryRequest{pool.device->server, MemoryKind::kPool, chunk.bytes});
    }
  }
  memory.unreserve(chunk.base, chunk.bytes);
  pool.reserved -= chunk.bytes;
}

void cut(Pool& pool, PoolChunk& chunk, std::uint64_t address, std::uint64_t bytes) {
  Allocation allocation;
  allocation.base = address;
  allocation.bytes = bytes;
  allocation.kind = AllocationKind::kPool;
  allocation.device = pool.device;
  allocation.file = chunk.file;
  allocation.file_offset = chunk.file_offset + (address - chunk.base);
  allocation.pool = &pool;
  allocation.block = chunk.key.block;
  allocation.id = library().next_id();
  library().memory().add(std::move(allocation));
  pool.used += round_up(bytes, kAlignment);
  pool.used_high = std::max(pool.used_high, pool.used);
}

bool cut_from_chunks(Pool& pool, std::uint64_t bytes, std::uint64_t& address) {
  for (PoolChunk& chunk : pool.chunks) {
    const auto at = chunk.free.take(round_up(bytes, kAlignment), kAlignment);
    if (!at) continue;
    address = *at;
    cut(pool, chunk, address, bytes);
    return true;
  }
  return false;
}

}  // namespace

Registry<Pool>& pools() {
  static auto* const instance = new Registry<Pool>;  // NOLINT(cppcoreguidelines-owning-memory)
  return *instance;
}

Pool& default_pool(DeviceView& device) {
  if (device.default_pool == nullptr) {
    auto pool = std::make_unique<Pool>();
    pool->device = &device;
    pool->is_default = true;
    pool->properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    pool->properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device.ordinal};
    device.default_pool = pools().add(std::move(pool));
  }
  return *device.default_pool;
}

Pool& current_pool(DeviceView& device) {
  return device.current_pool != nullptr ? *device.current_pool : default_pool(device);
}

CUresult allocate_from_pool(Pool& pool, std::uint64_t bytes, std::uint64_t& address) {
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (bytes > kArenaBytes) return CUDA_ERROR_OUT_OF_MEMORY;
  const std::uint64_t most = pool.properties.max_bytes;
  if (most != 0 && pool.used + bytes > most) return CUDA_ERROR_OUT_OF_MEMORY;
  if (cut_from_chunks(pool, bytes, address)) return CUDA_SUCCESS;
  const std::uint64_t needed = round_up(bytes, kGranuleBytes);
  CUresult result = take_chunk(pool, std::max(needed, kChunkBytes));
  if (result == CUDA_ERROR_OUT_OF_MEMORY) result = take_chunk(pool, needed);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    // What other pools of the device keep without need.
    pools().for_each([&](Pool& other) {
      if (other.device == pool.device) trim_pool(other, 0);
    });
    result = take_chunk(pool, needed);
  }
  if (result != CUDA_SUCCESS) return result;
  return cut_from_chunks(pool, bytes, address) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

void free_to_pool(Allocation& allocation) {
  Pool& pool = *allocation.pool;
  const std::uint64_t base = allocation.base;
  const std::uint64_t bytes = round_up(allocation.bytes, kAlignment);
  for (PoolChunk& chunk : pool.chunks) {
    if (base - chunk.base < chunk.bytes) chunk.free.give(base, bytes);
  }
  pool.used -= std::min(pool.used, bytes);
  library().memory().remove(base);
  trim_pool(pool, pool.release_threshold);
  if (pool.destroyed && pool.used == 0) pools().remove(&pool);
}

void trim_pool(Pool& pool, std::uint64_t keep) {
  for (auto chunk = pool.chunks.begin(); chunk != pool.chunks.end() && pool.reserved > keep;) {
    if (!chunk->free.is_whole(chunk->base, chunk->bytes)) {
      ++chunk;
      continue;
    }
    give_chunk(pool, *chunk);
    chunk = pool.chunks.erase(chunk);
  }
}

void destroy_pool(Pool& pool) {
  pool.release_threshold = 0;
  trim_pool(pool, 0);
  for (const auto& device : library().devices()) {
    if (device->current_pool == &pool) device->current_pool = nullptr;
  }
  if (pool.identity_block != 0) library().ask(Op::kBlockRelease, BlockId{pool.identity_block});
  pool.identity_block = 0;
  pool.destroyed = true;
  if (pool.used == 0) pools().remove(&pool);
}

// The memory is free for others once the stream has come here.
void submit_free(Stream& stream, CUdeviceptr address) {
  submit(stream, CommandOp::kFill, {0}, [address] {
    Allocation* allocation = library().memory().find(address);
    if (allocation == nullptr || allocation->base != address) return true;
    if (allocation->kind == AllocationKind::kPool) {
      free_to_pool(*allocation);
    } else if (allocation->kind == AllocationKind::kGraph) {
      end_graph_launch(*allocation);
    } else {
      free_allocation(*allocation);  // imported: this process's part of it
    }
    return true;
  });
}

}  // namespace aliquot::simdriver
