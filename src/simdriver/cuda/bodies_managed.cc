// Managed memory's advice and moves, graph memory's numbers, partitions of a device, the profiler:
// what has no effect on a simulated machine but the truth about it.
#include <algorithm>
#include <cstring>
#include <map>

#include "simdriver/cuda/bodies.h"
#include "simdriver/cuda/graphs.h"
#include "simdriver/cuda/requests.h"

using namespace aliquot::simdriver;  // NOLINT(google-build-using-namespace)

namespace {

struct Advice {
  bool read_mostly = false;
  int preferred = -2;  // CU_DEVICE_INVALID
};
std::map<std::uint64_t, Advice>& advices() {
  static auto* const all = new std::map<std::uint64_t, Advice>;  // NOLINT: lives for ever
  return *all;
}

Allocation* managed_at(CUdeviceptr address) {
  Allocation* allocation = library().memory().find(address);
  const bool managed = allocation != nullptr && allocation->kind == AllocationKind::kManaged;
  return managed ? allocation : nullptr;
}

CUresult advise(CUdeviceptr address, size_t count, CUmem_advise advice, int device) {
  const Lock lock = hold();
  const Allocation* allocation = managed_at(address);
  if (allocation == nullptr || count == 0 ||
      address + count > allocation->base + allocation->bytes) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  Advice& about = advices()[allocation->base];
  switch (advice) {
    case CU_MEM_ADVISE_SET_READ_MOSTLY:
    case CU_MEM_ADVISE_UNSET_READ_MOSTLY:
      about.read_mostly = advice == CU_MEM_ADVISE_SET_READ_MOSTLY;
      return CUDA_SUCCESS;
    case CU_MEM_ADVISE_SET_PREFERRED_LOCATION:
      about.preferred = device;
      return CUDA_SUCCESS;
    case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION:
      about.preferred = -2;
      return CUDA_SUCCESS;
    case CU_MEM_ADVISE_SET_ACCESSED_BY:
    case CU_MEM_ADVISE_UNSET_ACCESSED_BY:
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

// A move of pages costs a copy's time.
CUresult prefetch(CUdeviceptr address, size_t count, bool to_device, CUstream handle) {
  Lock lock = hold();
  Stream* stream = nullptr;
  if (const CUresult result = resolve_stream(lock, handle, stream)) return result;
  const Allocation* allocation = managed_at(address);
  if (allocation == nullptr || count == 0 ||
      address + count > allocation->base + allocation->bytes) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (const CUresult result = refuse_capture(*stream)) return result;
  const CopyKind kind = to_device ? CopyKind::kHostToDevice : CopyKind::kDeviceToHost;
  return submit(*stream, CommandOp::kCopy, {count, static_cast<std::uint64_t>(kind)});
}

CUresult range_attribute(void* data, size_t size, CUmem_range_attribute attribute,
                         CUdeviceptr address) {
  const Allocation* allocation = managed_at(address);
  if (allocation == nullptr || data == nullptr || size < sizeof(int)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const Advice about = advices()[allocation->base];
  int value = -2;
  if (attribute == CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY) value = about.read_mostly ? 1 : 0;
  if (attribute == CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION) value = about.preferred;
  std::memcpy(data, &value, sizeof(value));
  return CUDA_SUCCESS;
}

CUresult device_resource(const DeviceView& device, CUdevResource* resource,
                         CUdevResourceType type) {
  if (resource == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
  *resource = {};
  resource->type = type;
  resource->sm.sm_count =
      static_cast<unsigned>(device.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  resource->sm.min_partition_size =
      device.attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) >= 9 ? 8 : 2;
  resource->sm.coscheduled_alignment = resource->sm.min_partition_size;
  return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

CUresult sim_cuMemAdvise(CUdeviceptr address, size_t count, CUmem_advise advice, CUdevice device) {
  return advise(address, count, advice, device);
}
CUresult sim_cuMemAdvise_v2(CUdeviceptr address, size_t count, CUmem_advise advice,
                            CUmemLocation location) {
  const bool device = location.type == CU_MEM_LOCATION_TYPE_DEVICE;
  return advise(address, count, advice, device ? location.id : -1);
}
CUresult sim_cuMemPrefetchAsync(CUdeviceptr address, size_t count, CUdevice to, CUstream stream) {
  return prefetch(address, count, to >= 0, stream);
}
CUresult sim_cuMemPrefetchAsync_v2(CUdeviceptr address, size_t count, CUmemLocation location,
                                   unsigned int, CUstream stream) {
  return prefetch(address, count, location.type == CU_MEM_LOCATION_TYPE_DEVICE, stream);
}
CUresult sim_cuMemRangeGetAttribute(void* data, size_t size, CUmem_range_attribute attribute,
                                    CUdeviceptr address, size_t) {
  const Lock lock = hold();
  return range_attribute(data, size, attribute, address);
}
CUresult sim_cuMemRangeGetAttributes(void** data, size_t* sizes, CUmem_range_attribute* attributes,
                                     size_t num, CUdeviceptr address, size_t) {
  if (data == nullptr || sizes == nullptr || attributes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  for (size_t i = 0; i < num; ++i) {
    const CUresult result = range_attribute(data[i], sizes[i], attributes[i], address);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGraphMemTrim(CUdevice device) {
  const Lock lock = hold();
  // Nothing is kept: memory of graphs goes back when their free nodes run.
  return library().device(device) == nullptr ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attribute,
                                          void* value) {
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  const DeviceView* view = library().device(device);
  if (view == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  std::uint64_t bytes = 0;
  for (const auto& [base, allocation] : library().memory().all()) {
    const bool ours = allocation.kind == AllocationKind::kGraph && allocation.device == view;
    if (ours) bytes += allocation.charged_bytes;
  }
  const bool high = attribute == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH ||
                    attribute == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH;
  if (high) bytes = std::max(bytes, graph_objects().graph_bytes_high);
  std::memcpy(value, &bytes, sizeof(bytes));
  return CUDA_SUCCESS;
}

CUresult sim_cuDeviceSetGraphMemAttribute(CUdevice device, CUgraphMem_attribute, void* value) {
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  if (library().device(device) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  graph_objects().graph_bytes_high = 0;
  return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetDevResource(CUdevice device, CUdevResource* resource,
                                    CUdevResourceType type) {
  const Lock lock = hold();
  const DeviceView* view = library().device(device);
  if (view == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  return device_resource(*view, resource, type);
}

CUresult sim_cuCtxGetDevResource(CUcontext handle, CUdevResource* resource,
                                 CUdevResourceType type) {
  const Lock lock = hold();
  const Context* context = library().contexts.find(handle);
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  return device_resource(*context->device, resource, type);
}

CUresult sim_cuProfilerStart() { return CUDA_SUCCESS; }
CUresult sim_cuProfilerStop() { return CUDA_SUCCESS; }

CUresult sim_cuFlushGPUDirectRDMAWrites(CUflushGPUDirectRDMAWritesTarget,
                                        CUflushGPUDirectRDMAWritesScope) {
  return CUDA_SUCCESS;
}

}  // extern "C"
