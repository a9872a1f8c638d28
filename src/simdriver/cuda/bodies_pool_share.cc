// Pools and their allocations in other processes. A pool is exported as a descriptor that only
// names it; an allocation as the key of the block that it lies in.
#include <cstring>

#include "simdriver/cuda/bodies.h"
#include "simdriver/cuda/contexts.h"
#include "simdriver/cuda/physical.h"
#include "simdriver/cuda/pools.h"

using namespace aliquot::simdriver;  // NOLINT(google-build-using-namespace)

namespace {

constexpr std::uint64_t kMagic = 0x616c7169706f6f6c;

struct SharedPointer {
  std::uint64_t magic;
  BlockKey key;
  std::uint64_t offset;
  std::uint64_t bytes;
};
static_assert(sizeof(SharedPointer) <= sizeof(CUmemPoolPtrExportData));

// A block of no memory by which others know the pool; made at the first export.
CUresult identify(Pool& pool) {
  if (pool.identity_block != 0) return CUDA_SUCCESS;
  Answer answer;
  const MemoryRequest request{pool.device->server, MemoryKind::kCell, 1};
  if (const CUresult result = library().ask(Op::kBlockCreate, request, &answer)) return result;
  const auto reply = answer.as<BlockReply>();
  if (!reply) return CUDA_ERROR_SYSTEM_DRIVER_MISMATCH;
  pool.identity_block = reply->key.block;
  return CUDA_SUCCESS;
}

CUresult import_pool(int fd, Pool*& made) {
  Answer answer;
  const int fds[] = {fd};
  if (library().ask_bytes(Op::kBlockOpenFd, {}, fds, &answer) != CUDA_SUCCESS) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const auto reply = answer.as<BlockReply>();
  if (!reply || reply->kind != MemoryKind::kCell) return CUDA_ERROR_INVALID_VALUE;
  auto pool = std::make_unique<Pool>();
  pool->imported = true;
  for (const auto& device : library().devices()) {
    if (device->server == reply->device) pool->device = device.get();
  }
  if (pool->device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  pool->properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  pool->properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, pool->device->ordinal};
  pool->identity_block = reply->key.block;
  made = pools().add(std::move(pool));
  return CUDA_SUCCESS;
}

CUresult import_pointer(Pool& pool, const SharedPointer& shared, std::uint64_t& address) {
  Answer answer;
  if (library().ask(Op::kBlockOpenKey, shared.key, &answer) != CUDA_SUCCESS) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const auto reply = answer.as<BlockReply>();
  if (!reply || answer.fds.empty()) return CUDA_ERROR_SYSTEM_DRIVER_MISMATCH;
  const bool inside = shared.offset <= reply->bytes && shared.bytes != 0 &&
                      shared.bytes <= reply->bytes - shared.offset;
  Memory& memory = library().memory();
  const std::uint64_t whole = (shared.bytes + kGranuleBytes - 1) / kGranuleBytes * kGranuleBytes;
  address = inside ? memory.reserve(whole, kGranuleBytes) : 0;
  if (address == 0) {
    library().ask(Op::kBlockRelease, BlockId{shared.key.block});
    return inside ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_VALUE;
  }
  Allocation allocation;
  allocation.base = address;
  allocation.bytes = shared.bytes;
  allocation.kind = AllocationKind::kIpc;
  allocation.device = pool.device;
  allocation.file = std::make_shared<MemoryFile>(std::move(answer.fds[0]),
                                                 MemoryFile::Sharing::kShared, memory.commit());
  allocation.file_offset = shared.offset;
  allocation.block = shared.key.block;
  allocation.pool = &pool;
  allocation.id = library().next_id();
  memory.add(std::move(allocation));
  return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

CUresult sim_cuMemPoolExportToShareableHandle(void* handle_out, CUmemoryPool handle,
                                              CUmemAllocationHandleType type,
                                              unsigned long long flags) {
  if (handle_out == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
  const Lock lock = hold();
  Pool* pool = pools().find(handle);
  if (pool == nullptr || pool->imported || pool->properties.handle_types == 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (const CUresult result = identify(*pool)) return result;
  return export_block(pool->identity_block, handle_out);
}

CUresult sim_cuMemPoolImportFromShareableHandle(CUmemoryPool* pool_out, void* handle,
                                                CUmemAllocationHandleType type,
                                                unsigned long long flags) {
  if (pool_out == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
  const Lock lock = hold();
  Pool* pool = nullptr;
  const int fd = static_cast<int>(reinterpret_cast<std::intptr_t>(handle));
  if (const CUresult result = import_pool(fd, pool)) return result;
  *pool_out = reinterpret_cast<CUmemoryPool>(pool);
  return CUDA_SUCCESS;
}

CUresult sim_cuMemPoolExportPointer(CUmemPoolPtrExportData* out, CUdeviceptr address) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  const Allocation* allocation = library().memory().find(address);
  if (allocation == nullptr || allocation->kind != AllocationKind::kPool ||
      allocation->base != address) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  for (const PoolChunk& chunk : allocation->pool->chunks) {
    if (chunk.key.block == 0 || address - chunk.base >= chunk.bytes) continue;
    const SharedPointer shared{kMagic, chunk.key, address - chunk.base, allocation->bytes};
    *out = {};
    std::memcpy(out->reserved, &shared, sizeof(shared));
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_cuMemPoolImportPointer(CUdeviceptr* out, CUmemoryPool handle,
                                    CUmemPoolPtrExportData* data) {
  if (out == nullptr || data == nullptr) return CUDA_ERROR_INVALID_VALUE;
  SharedPointer shared{};
  std::memcpy(&shared, data->reserved, sizeof(shared));
  if (shared.magic != kMagic) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  Pool* pool = pools().find(handle);
  if (pool == nullptr || !pool->imported) return CUDA_ERROR_INVALID_VALUE;
  std::uint64_t address = 0;
  const CUresult result = import_pointer(*pool, shared, address);
  if (result == CUDA_SUCCESS) *out = address;
  return result;
}

}  // extern "C"
