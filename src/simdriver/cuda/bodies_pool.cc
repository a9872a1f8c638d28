// Stream-ordered allocation and its pools.
#include <algorithm>
#include <cstring>

#include "simdriver/cuda/bodies.h"
#include "simdriver/cuda/pools.h"
#include "simdriver/cuda/requests.h"

using namespace aliquot::simdriver;  // NOLINT(google-build-using-namespace)

namespace {

CUmemoryPool handle_of(Pool& pool) { return reinterpret_cast<CUmemoryPool>(&pool); }

CUresult find(CUmemoryPool handle, Pool*& pool) {
  pool = pools().find(handle);
  return pool == nullptr || pool->destroyed ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult device_at(const CUmemLocation* location, DeviceView*& device) {
  if (location == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (location->type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_NOT_SUPPORTED;
  device = library().device(location->id);
  return device == nullptr ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

CUresult allocate(CUdeviceptr* address, size_t bytes, Pool* pool, CUstream handle) {
  if (address == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Lock lock = hold();
  Stream* stream = nullptr;
  if (const CUresult result = resolve_stream(lock, handle, stream)) return result;
  if (pool != nullptr && pools().find(pool) == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Pool& from = pool != nullptr ? *pool : current_pool(*stream->context->device);
  if (is_capturing(*stream)) return capture_allocation(*stream, from.properties, bytes, *address);
  std::uint64_t at = 0;
  const CUresult result = allocate_from_pool(from, bytes, at);
  if (result == CUDA_SUCCESS) *address = at;
  return result;
}

template <typename T>
CUresult give(void* out, T value) {
  std::memcpy(out, &value, sizeof(value));
  return CUDA_SUCCESS;
}

CUresult get_attribute(const Pool& pool, CUmemPool_attribute attribute, void* value) {
  switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
      return give<int>(value, pool.reuse[attribute]);
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      return give<std::uint64_t>(value, pool.release_threshold);
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
      return give<std::uint64_t>(value, pool.reserved);
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
      return give<std::uint64_t>(value, pool.reserved_high);
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
      return give<std::uint64_t>(value, pool.used);
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      return give<std::uint64_t>(value, pool.used_high);
    case CU_MEMPOOL_ATTR_ALLOCATION_TYPE:
      return give<int>(value, pool.properties.type);
    case CU_MEMPOOL_ATTR_EXPORT_HANDLE_TYPES:
      return give<int>(value, pool.properties.handle_types);
    case CU_MEMPOOL_ATTR_LOCATION_ID:
      return give<int>(value, pool.properties.location.id);
    case CU_MEMPOOL_ATTR_LOCATION_TYPE:
      return give<int>(value, pool.properties.location.type);
    case CU_MEMPOOL_ATTR_MAX_POOL_SIZE:
      return give<std::uint64_t>(value, pool.properties.max_bytes);
    case CU_MEMPOOL_ATTR_HW_DECOMPRESS_ENABLED:
      return give<int>(value, 0);
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult set_attribute(Pool& pool, CUmemPool_attribute attribute, const void* value) {
  int flag = 0;
  std::uint64_t wide = 0;
  std::memcpy(&flag, value, sizeof(flag));
  switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
      pool.reuse[attribute] = flag;
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      std::memcpy(&pool.release_threshold, value, sizeof(pool.release_threshold));
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      // Only back to the present.
      std::memcpy(&wide, value, sizeof(wide));
      if (wide != 0) return CUDA_ERROR_INVALID_VALUE;
      (attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH ? pool.used_high : pool.reserved_high) =
          attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH ? pool.used : pool.reserved;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

// Runs `act` on the pool under the lock.
template <typename Act>
CUresult with_pool(CUmemoryPool handle, const void* out, Act act) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  Pool* pool = nullptr;
  if (const CUresult result = find(handle, pool)) return result;
  return act(*pool);
}

}  // namespace

extern "C" {

CUresult sim_cuMemAllocAsync(CUdeviceptr* address, size_t bytes, CUstream stream) {
  return allocate(address, bytes, nullptr, stream);
}
CUresult sim_cuMemAllocFromPoolAsync(CUdeviceptr* address, size_t bytes, CUmemoryPool pool,
                                     CUstream stream) {
  if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return allocate(address, bytes, reinterpret_cast<Pool*>(pool), stream);
}

CUresult sim_cuMemFreeAsync(CUdeviceptr address, CUstream handle) {
  if (address == 0) return CUDA_SUCCESS;
  Lock lock = hold();
  Stream* stream = nullptr;
  if (const CUresult result = resolve_stream(lock, handle, stream)) return result;
  if (is_capturing(*stream)) return request(lock, *stream, FreeOperation{address}, Waiting::kNot);
  const Allocation* allocation = library().memory().find(address);
  // Only what was allocated in stream order, here or in the process it was imported from.
  const bool ordered = allocation != nullptr && allocation->base == address &&
                       (allocation->pool != nullptr || allocation->kind == AllocationKind::kGraph);
  if (!ordered) return CUDA_ERROR_INVALID_VALUE;
  submit_free(*stream, address);
  return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetDefaultMemPool(CUmemoryPool* pool_out, CUdevice ordinal) {
  if (pool_out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  DeviceView* device = library().device(ordinal);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  *pool_out = handle_of(default_pool(*device));
  return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetMemPool(CUmemoryPool* pool_out, CUdevice ordinal) {
  if (pool_out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  DeviceView* device = library().device(ordinal);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  *pool_out = handle_of(current_pool(*device));
  return CUDA_SUCCESS;
}

CUresult sim_cuDeviceSetMemPool(CUdevice ordinal, CUmemoryPool handle) {
  const Lock lock = hold();
  DeviceView* device = library().device(ordinal);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  Pool* pool = nullptr;
  if (const CUresult result = find(handle, pool)) return result;
  if (pool->device != device || pool->imported) return CUDA_ERROR_INVALID_VALUE;
  device->current_pool = pool;
  return CUDA_SUCCESS;
}

CUresult sim_cuMemGetDefaultMemPool(CUmemoryPool* pool_out, CUmemLocation* location,
                                    CUmemAllocationType type) {
  if (pool_out == nullptr || type != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  DeviceView* device = nullptr;
  if (const CUresult result = device_at(location, device)) return result;
  *pool_out = handle_of(default_pool(*device));
  return CUDA_SUCCESS;
}

CUresult sim_cuMemGetMemPool(CUmemoryPool* pool_out, CUmemLocation* location,
                             CUmemAllocationType type) {
  if (pool_out == nullptr || type != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  DeviceView* device = nullptr;
  if (const CUresult result = device_at(location, device)) return result;
  *pool_out = handle_of(current_pool(*device));
  return CUDA_SUCCESS;
}

CUresult sim_cuMemSetMemPool(CUmemLocation* location, CUmemAllocationType type, CUmemoryPool pool) {
  if (location == nullptr || type != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
  if (location->type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_NOT_SUPPORTED;
  return sim_cuDeviceSetMemPool(location->id, pool);
}

CUresult sim_cuMemPoolCreate(CUmemoryPool* pool_out, const CUmemPoolProps* properties) {
  if (pool_out == nullptr || properties == nullptr ||
      properties->type != CU_MEM_ALLOCATION_TYPE_PINNED) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if ((properties->handle_types & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != 0) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  const Lock lock = hold();
  DeviceView* device = nullptr;
  if (const CUresult result = device_at(&properties->location, device)) return result;
  auto pool = std::make_unique<Pool>();
  pool->properties = *properties;
  pool->device = device;
  *pool_out = handle_of(*pools().add(std::move(pool)));
  return CUDA_SUCCESS;
}

CUresult sim_cuMemPoolDestroy(CUmemoryPool handle) {
  const Lock lock = hold();
  Pool* pool = nullptr;
  if (const CUresult result = find(handle, pool)) return result;
  if (pool->is_default) return CUDA_ERROR_INVALID_VALUE;
  destroy_pool(*pool);
  return CUDA_SUCCESS;
}

CUresult sim_cuMemPoolTrimTo(CUmemoryPool handle, size_t min_bytes_to_keep) {
  return with_pool(handle, &handle, [&](Pool& pool) {
    trim_pool(pool, min_bytes_to_keep);
    return CUDA_SUCCESS;
  });
}

CUresult sim_cuMemPoolGetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute,
                                   void* value) {
  return with_pool(handle, value,
                   [&](const Pool& pool) { return get_attribute(pool, attribute, value); });
}

CUresult sim_cuMemPoolSetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute,
                                   void* value) {
  return with_pool(handle, value,
                   [&](Pool& pool) { return set_attribute(pool, attribute, value); });
}

CUresult sim_cuMemPoolSetAccess(CUmemoryPool handle, const CUmemAccessDesc* map, size_t count) {
  return with_pool(handle, map, [&](Pool& pool) {
    for (size_t i = 0; i < count; ++i) {
      DeviceView* device = nullptr;
      if (const CUresult result = device_at(&map[i].location, device)) return result;
      const bool own = device == pool.device;
      if (own && map[i].flags == CU_MEM_ACCESS_FLAGS_PROT_NONE) return CUDA_ERROR_INVALID_VALUE;
      if (!own && pool.device != nullptr && !device->reaches(*pool.device)) {
        return CUDA_ERROR_INVALID_DEVICE;
      }
      pool.access[device->ordinal] = map[i].flags;
    }
    return CUDA_SUCCESS;
  });
}

CUresult sim_cuMemPoolGetAccess(CUmemAccess_flags* flags, CUmemoryPool handle,
                                CUmemLocation* location) {
  return with_pool(handle, flags, [&](const Pool& pool) {
    DeviceView* device = nullptr;
    if (const CUresult result = device_at(location, device)) return result;
    const auto set = pool.access.find(device->ordinal);
    const bool own = device == pool.device;
    *flags = set != pool.access.end() ? set->second
             : own                    ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                                      : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return CUDA_SUCCESS;
  });
}

}  // extern "C"
