// Virtual memory management: charged at cuMemCreate, given back when the last handle, mapping and
// other use is gone. Where it lies is what the properties say, whatever context is current.
#include "interposer/contexts.h"
#include "interposer/copied.h"
#include "interposer/guards.h"
#include "interposer/mapped_array.h"
#include "interposer/physical_memory.h"
#include "interposer/real_driver.h"

namespace aliquot::interposer {
namespace {

using wire::Kind;

template <class Call>
CUresult bind(CUresult bound, CUmemGenericAllocationHandle multicast, std::size_t offset,
              unsigned gpu_or_none, Call pin) {
  if (bound != CUDA_SUCCESS || pin()) return bound;
  // No memory to remember the binding: undo it.
  const CUdevice device = gpu_or_none < wire::kMaxGpus ? device_of(gpu_or_none) : 0;
  real::cuMulticastUnbind(multicast, device, offset, kBlockGranule);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

constexpr int kMapOperation = 1;  // CU_MEM_OPERATION_TYPE_MAP

// A tile of a sparse array keeps its memory until the array is destroyed: the call that takes a
// tile out does not say which memory it was. The list is read once, as every descriptor.
template <class Call>
CUresult map_tiles(CUarrayMapInfo* given, unsigned count, Call call) {
  MappedArray<CUarrayMapInfo> list;
  bool copied = true;
  for (unsigned i = 0; given != nullptr && i < count && copied; ++i) copied = list.append(given[i]);
  CUresult result =
      copied ? call(given != nullptr ? list.begin() : nullptr) : CUresult{CUDA_ERROR_OUT_OF_MEMORY};
  for (const CUarrayMapInfo& tile : list)
    if (result == CUDA_SUCCESS && tile.operation == kMapOperation &&
        !physical::pin(tile.handle, name_of(tile.array), tile.offset))
      result = CUDA_ERROR_OUT_OF_MEMORY;
  list.forget_all();
  return result;
}

}  // namespace

namespace guard {

CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes,
                     const CUmemAllocationProp* properties, unsigned long long flags) {
  const Copied wanted(properties);
  const unsigned gpu = wanted.at != nullptr ? gpu_of(wanted.copy.location) : kNoGpu;
  if (gpu == kForeignGpu) return why_foreign(wanted.copy.location.id);
  Reservation reservation(gpu, Kind::kVmm, round_up(bytes, kBlockGranule));
  if (!reservation.granted()) return CUDA_ERROR_OUT_OF_MEMORY;
  CUmemGenericAllocationHandle made = 0;
  const CUresult result =
      real::cuMemCreate(handle != nullptr ? &made : nullptr, bytes, wanted.at, flags);
  if (result != CUDA_SUCCESS) return result;
  if (gpu != kNoGpu && !physical::add(reservation, made)) {
    real::cuMemRelease(made);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *handle = made;
  return result;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  const physical::Allocation allocation = physical::release_begins(handle);
  const CUresult result = real::cuMemRelease(handle);
  if (result != CUDA_SUCCESS) {
    physical::release_failed(allocation, handle);
    return result;
  }
  physical::release_done(allocation);
  physical::unpin(handle, 0, physical::kEverywhere, kNoGpu);  // what a multicast object had bound
  return result;
}

CUresult cuMemExportToShareableHandle(void* shareable, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType type, unsigned long long flags) {
  const CUresult result = real::cuMemExportToShareableHandle(shareable, handle, type, flags);
  if (result == CUDA_SUCCESS) physical::exported(handle);
  return result;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* address) {
  const CUresult result = real::cuMemRetainAllocationHandle(handle, address);
  if (result == CUDA_SUCCESS) physical::retained(*handle, name_of(address));
  return result;
}

CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long flags) {
  const physical::Allocation allocation = physical::map_begins(handle);
  const CUresult result = real::cuMemMap(address, bytes, offset, handle, flags);
  if (result == CUDA_SUCCESS && physical::map_done(allocation, address, bytes)) return result;
  if (result == CUDA_SUCCESS) real::cuMemUnmap(address, bytes);
  physical::map_failed(allocation);
  return result == CUDA_SUCCESS ? CUDA_ERROR_OUT_OF_MEMORY : result;
}

CUresult cuMemUnmap(CUdeviceptr address, size_t bytes) {
  const std::uint64_t until = physical::mappings_until_now();
  const CUresult result = real::cuMemUnmap(address, bytes);
  if (result == CUDA_SUCCESS) physical::unmapped(address, bytes, until);
  return result;
}

CUresult cuMemMapArrayAsync(CUarrayMapInfo* list, unsigned int count, CUstream stream) {
  return map_tiles(list, count, [&](CUarrayMapInfo* copied) {
    return real::cuMemMapArrayAsync(copied, count, stream);
  });
}
CUresult cuMemMapArrayAsync_ptsz(CUarrayMapInfo* list, unsigned int count, CUstream stream) {
  return map_tiles(list, count, [&](CUarrayMapInfo* copied) {
    return real::cuMemMapArrayAsync_ptsz(copied, count, stream);
  });
}

CUresult cuMulticastBindMem(CUmemGenericAllocationHandle multicast, size_t mc_offset,
                            CUmemGenericAllocationHandle mem_handle, size_t mem_offset, size_t size,
                            unsigned long long flags) {
  return bind(real::cuMulticastBindMem(multicast, mc_offset, mem_handle, mem_offset, size, flags),
              multicast, mc_offset, kNoGpu,
              [&] { return physical::pin(mem_handle, multicast, mc_offset); });
}
// NOLINTNEXTLINE(readability-function-size): the driver's own parameters
CUresult cuMulticastBindMem_v2(CUmemGenericAllocationHandle multicast, CUdevice device,
                               size_t mc_offset, CUmemGenericAllocationHandle mem_handle,
                               size_t mem_offset, size_t size, unsigned long long flags) {
  return bind(real::cuMulticastBindMem_v2(multicast, device, mc_offset, mem_handle, mem_offset,
                                          size, flags),
              multicast, mc_offset, gpu_of(device),
              [&] { return physical::pin(mem_handle, multicast, mc_offset); });
}
CUresult cuMulticastBindAddr(CUmemGenericAllocationHandle multicast, size_t mc_offset,
                             CUdeviceptr memory, size_t size, unsigned long long flags) {
  return bind(real::cuMulticastBindAddr(multicast, mc_offset, memory, size, flags), multicast,
              mc_offset, kNoGpu,
              [&] { return physical::pin_mapped(memory, multicast, mc_offset); });
}
CUresult cuMulticastBindAddr_v2(CUmemGenericAllocationHandle multicast, CUdevice device,
                                size_t mc_offset, CUdeviceptr memory, size_t size,
                                unsigned long long flags) {
  return bind(real::cuMulticastBindAddr_v2(multicast, device, mc_offset, memory, size, flags),
              multicast, mc_offset, gpu_of(device),
              [&] { return physical::pin_mapped(memory, multicast, mc_offset); });
}
CUresult cuMulticastUnbind(CUmemGenericAllocationHandle multicast, CUdevice device,
                           size_t mc_offset, size_t size) {
  const CUresult result = real::cuMulticastUnbind(multicast, device, mc_offset, size);
  if (result == CUDA_SUCCESS) physical::unpin(multicast, mc_offset, size, gpu_of(device));
  return result;
}

}  // namespace guard
}  // namespace aliquot::interposer
