// Linear, pitched and managed device memory, and what is known of an address.
#include <algorithm>
#include <cstring>

#include "simdriver/cuda/allocate.h"
#include "simdriver/cuda/bodies.h"
#include "simdriver/cuda/contexts.h"
#include "simdriver/cuda/graphs.h"
#include "simdriver/cuda/pools.h"
#include "simdriver/cuda/work.h"

using namespace aliquot::simdriver;  // NOLINT(google-build-using-namespace)

namespace {

CUresult allocate(CUdeviceptr* address, size_t bytes) {
  if (address == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  Context* context = nullptr;
  if (const CUresult result = current_context(context)) return result;
  if (const CUresult result = refuse_during_capture()) return result;
  std::uint64_t at = 0;
  const CUresult result = allocate_linear(*context, bytes, at);
  if (result == CUDA_SUCCESS) *address = at;
  return result;
}

// What a pointer attribute is about.
struct Pointed {
  const Allocation* allocation = nullptr;
  const HostRange* host = nullptr;
  std::uint64_t address = 0;
};

Pointed pointed_by(std::uint64_t address) {
  Memory& memory = library().memory();
  Pointed pointed;
  pointed.address = address;
  pointed.allocation = memory.find(address);
  if (pointed.allocation != nullptr && pointed.allocation->kind == AllocationKind::kArray) {
    pointed.allocation = nullptr;
  }
  pointed.host = memory.find_host(reinterpret_cast<const void*>(address));
  return pointed;
}

template <typename T>
CUresult give(void* data, T value) {
  std::memcpy(data, &value, sizeof(value));  // NOLINT(bugprone-sizeof-expression): also handles
  return CUDA_SUCCESS;
}

bool on_device(const Pointed& p) {
  return p.allocation != nullptr && p.allocation->device != nullptr;
}

CUresult place_attribute(void* data, CUpointer_attribute attribute, const Pointed& p) {
  const Allocation* a = p.allocation;
  const bool device = on_device(p);
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT: {
      Context* context = a != nullptr ? a->context : p.host->context;
      if (context == nullptr && a != nullptr && device) context = a->device->primary;
      return give(data, handle_of(context));
    }
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return give<unsigned>(data, device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST);
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      return give<CUdeviceptr>(data, p.address);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      if (a != nullptr && a->kind != AllocationKind::kManaged) return CUDA_ERROR_INVALID_VALUE;
      return give<void*>(data, reinterpret_cast<void*>(p.address));
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      if (!device && p.host != nullptr && p.host->context != nullptr) {
        return give<int>(data, p.host->context->device->ordinal);
      }
      return give<int>(data, device ? a->device->ordinal : -2);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      return give<CUdeviceptr>(
          data, a != nullptr ? a->base : reinterpret_cast<std::uintptr_t>(p.host->base));
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      return give<size_t>(data, a != nullptr ? a->bytes : p.host->bytes);
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult pointer_attribute(void* data, CUpointer_attribute attribute, const Pointed& p) {
  const Allocation* a = p.allocation;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
      return give<unsigned>(data, a != nullptr && a->sync_memops ? 1u : 0u);
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      return give<unsigned long long>(data, a != nullptr ? a->id : p.host->id);
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      return give<unsigned>(data, a != nullptr && a->kind == AllocationKind::kManaged ? 1u : 0u);
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      return give<unsigned>(data, a != nullptr && a->kind == AllocationKind::kLinear ? 1u : 0u);
    case CU_POINTER_ATTRIBUTE_MAPPED:
      return give<unsigned>(data, 1u);
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
      return give<unsigned long long>(data, a != nullptr && a->block != 0 ? 1u : 0u);
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
      return give<unsigned>(data, on_device(p) && a->kind == AllocationKind::kLinear ? 1u : 0u);
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
      return give<unsigned>(data, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      return give<void*>(data, a != nullptr ? a->pool : nullptr);
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
      return give<size_t>(data, a != nullptr ? a->bytes : p.host->bytes);
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
      return give<CUdeviceptr>(
          data, a != nullptr ? a->base : reinterpret_cast<std::uintptr_t>(p.host->base));
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
      return give<unsigned long long>(data, a != nullptr ? a->id : p.host->id);
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
      return give<unsigned>(data, 0u);
    default:
      return place_attribute(data, attribute, p);
  }
}

}  // namespace

extern "C" {

CUresult sim_cuMemGetInfo_v2(size_t* free, size_t* total) {
  const Lock lock = hold();
  Context* context = nullptr;
  if (const CUresult result = current_context(context)) return result;
  Answer answer;
  const CUresult result =
      library().ask(Op::kMemoryInfo, DeviceRequest{context->device->server}, &answer);
  const auto info = answer.as<MemoryInfo>();
  if (result != CUDA_SUCCESS || !info) return result;
  // Either may be left out.
  if (free != nullptr) *free = info->free_bytes;
  if (total != nullptr) *total = info->total_bytes;
  return CUDA_SUCCESS;
}

CUresult sim_cuMemGetInfo(unsigned int* free, unsigned int* total) {
  size_t wide_free = 0;
  size_t wide_total = 0;
  if (const CUresult result = sim_cuMemGetInfo_v2(&wide_free, &wide_total)) return result;
  if (free != nullptr) *free = static_cast<unsigned>(std::min<size_t>(wide_free, UINT32_MAX));
  if (total != nullptr) *total = static_cast<unsigned>(std::min<size_t>(wide_total, UINT32_MAX));
  return CUDA_SUCCESS;
}

CUresult sim_cuMemAlloc_v2(CUdeviceptr* address, size_t bytes) { return allocate(address, bytes); }

CUresult sim_cuMemAllocPitch_v2(CUdeviceptr* address, size_t* pitch, size_t width_in_bytes,
                                size_t height, unsigned int element_size_bytes) {
  if (pitch == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::uint64_t row = 0;
  CUresult result = pitch_of(width_in_bytes, height, element_size_bytes, row);
  if (result == CUDA_SUCCESS) result = allocate(address, row * height);
  if (result == CUDA_SUCCESS) *pitch = row;
  return result;
}

CUresult sim_cuMemAllocManaged(CUdeviceptr* address, size_t bytes, unsigned int flags) {
  if (address == nullptr || bytes == 0 ||
      (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const Lock lock = hold();
  Context* context = nullptr;
  if (const CUresult result = current_context(context)) return result;
  std::uint64_t at = 0;
  const CUresult result = allocate_managed(*context, bytes, at);
  if (result == CUDA_SUCCESS) *address = at;
  return result;
}

CUresult sim_cuMemFree_v2(CUdeviceptr address) {
  if (address == 0) return CUDA_SUCCESS;
  Lock lock = hold();
  Context* context = nullptr;
  if (const CUresult result = current_context(context)) return result;
  Memory& memory = library().memory();
  const auto freeable = [&]() -> Allocation* {
    Allocation* found = memory.find(address);
    if (found == nullptr || found->base != address) return nullptr;
    const bool ours = found->kind == AllocationKind::kLinear ||
                      found->kind == AllocationKind::kManaged ||
                      found->kind == AllocationKind::kPool;
    return ours ? found : nullptr;
  };
  Allocation* allocation = freeable();
  if (allocation == nullptr) return CUDA_ERROR_INVALID_VALUE;
  // Freeing waits for the work that may still use the memory.
  Context* owner = allocation->context != nullptr ? allocation->context : context;
  if (const CUresult result = synchronise(lock, *owner)) return result;
  allocation = freeable();
  if (allocation == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (allocation->kind == AllocationKind::kPool) {
    free_to_pool(*allocation);
  } else {
    free_allocation(*allocation);
  }
  return CUDA_SUCCESS;
}

CUresult sim_cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* size, CUdeviceptr address) {
  const Lock lock = hold();
  Context* context = nullptr;
  if (const CUresult result = current_context(context)) return result;
  const Pointed pointed = pointed_by(address);
  if (pointed.allocation == nullptr && pointed.host == nullptr) return CUDA_ERROR_NOT_FOUND;
  const Allocation* a = pointed.allocation;
  if (base != nullptr) {
    *base = a != nullptr ? a->base : reinterpret_cast<std::uintptr_t>(pointed.host->base);
  }
  if (size != nullptr) *size = a != nullptr ? a->bytes : pointed.host->bytes;
  return CUDA_SUCCESS;
}

CUresult sim_cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr address) {
  if (data == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  const Pointed pointed = pointed_by(address);
  if (pointed.allocation == nullptr && pointed.host == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return pointer_attribute(data, attribute, pointed);
}

// Never fails for an unknown pointer: the answers are then zero.
CUresult sim_cuPointerGetAttributes(unsigned int num_attributes, CUpointer_attribute* attributes,
                                    void** data, CUdeviceptr address) {
  if (attributes == nullptr || data == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  const Pointed pointed = pointed_by(address);
  const bool known = pointed.allocation != nullptr || pointed.host != nullptr;
  for (unsigned i = 0; i < num_attributes; ++i) {
    if (known && pointer_attribute(data[i], attributes[i], pointed) == CUDA_SUCCESS) continue;
    const CUpointer_attribute attribute = attributes[i];
    if (attribute == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) {
      give<int>(data[i], -2);
    } else if (attribute == CU_POINTER_ATTRIBUTE_MEMORY_TYPE ||
               attribute == CU_POINTER_ATTRIBUTE_IS_MANAGED ||
               attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS ||
               attribute == CU_POINTER_ATTRIBUTE_MAPPED) {
      give<unsigned>(data[i], 0);
    } else {
      give<unsigned long long>(data[i], 0);
    }
  }
  return CUDA_SUCCESS;
}

CUresult sim_cuPointerSetAttribute(const void* value, CUpointer_attribute attribute,
                                   CUdeviceptr address) {
  if (value == nullptr || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const Lock lock = hold();
  Allocation* allocation = library().memory().find(address);
  if (allocation == nullptr) return CUDA_ERROR_INVALID_VALUE;
  unsigned on = 0;
  std::memcpy(&on, value, sizeof(on));
  allocation->sync_memops = on != 0;
  return CUDA_SUCCESS;
}

}  // extern "C"
