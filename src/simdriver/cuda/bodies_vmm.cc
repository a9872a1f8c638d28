// Virtual memory management: physical memory by handle, addresses, mappings, access.
#include "simdriver/cuda/bodies.h"
#include "simdriver/cuda/physical.h"

using namespace aliquot::simdriver;  // NOLINT(google-build-using-namespace)

namespace {

CUresult check_properties(const CUmemAllocationProp* properties) {
  if (properties == nullptr || properties->type != CU_MEM_ALLOCATION_TYPE_PINNED) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const int handles = properties->requested_handle_types;
  if ((handles & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != 0) return CUDA_ERROR_NOT_SUPPORTED;
  switch (properties->location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
      return library().device(properties->location.id) == nullptr ? CUDA_ERROR_INVALID_DEVICE
                                                                  : CUDA_SUCCESS;
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

bool granular(std::uint64_t value) { return value % kGranuleBytes == 0; }

}  // namespace

extern "C" {

CUresult sim_cuMemGetAllocationGranularity(size_t* granularity,
                                           const CUmemAllocationProp* properties,
                                           CUmemAllocationGranularity_flags option) {
  if (granularity == nullptr || (option != CU_MEM_ALLOC_GRANULARITY_MINIMUM &&
                                 option != CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const Lock lock = hold();
  if (const CUresult result = check_properties(properties)) return result;
  *granularity = kGranuleBytes;
  return CUDA_SUCCESS;
}

CUresult sim_cuMemCreate(CUmemGenericAllocationHandle* handle, size_t size,
                         const CUmemAllocationProp* properties, unsigned long long flags) {
  if (handle == nullptr || size == 0 || !granular(size) || flags != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const Lock lock = hold();
  if (const CUresult result = check_properties(properties)) return result;
  PhysicalMemory* memory = nullptr;
  if (const CUresult result = create_physical(*properties, size, memory)) return result;
  *handle = handle_of(memory);
  return CUDA_SUCCESS;
}

CUresult sim_cuMemRelease(CUmemGenericAllocationHandle handle) {
  const Lock lock = hold();
  PhysicalMemory* memory = find_physical(handle);
  if (memory == nullptr || memory->references == 0) return CUDA_ERROR_INVALID_VALUE;
  --memory->references;
  drop_if_unused(*memory);
  return CUDA_SUCCESS;
}

CUresult sim_cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* address) {
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  const Allocation* mapping = library().memory().find(reinterpret_cast<std::uintptr_t>(address));
  PhysicalMemory* memory = mapping != nullptr && mapping->kind == AllocationKind::kVmm
                               ? find_physical(mapping->handle)
                               : nullptr;
  if (memory == nullptr) return CUDA_ERROR_INVALID_VALUE;
  ++memory->references;
  *handle = handle_of(memory);
  return CUDA_SUCCESS;
}

CUresult sim_cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* properties,
                                                    CUmemGenericAllocationHandle handle) {
  if (properties == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  const PhysicalMemory* memory = find_physical(handle);
  if (memory == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *properties = memory->properties;
  return CUDA_SUCCESS;
}

CUresult sim_cuMemAddressReserve(CUdeviceptr* address, size_t size, size_t alignment,
                                 CUdeviceptr wish, unsigned long long flags) {
  const bool power = (alignment & (alignment - 1)) == 0;
  if (address == nullptr || size == 0 || !granular(size) || !power || flags != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const Lock lock = hold();
  const std::uint64_t align = alignment > kGranuleBytes ? alignment : kGranuleBytes;
  const std::uint64_t at = library().memory().reserve(size, align, wish % align == 0 ? wish : 0);
  if (at == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  reservations()[at] = size;
  *address = at;
  return CUDA_SUCCESS;
}

CUresult sim_cuMemAddressFree(CUdeviceptr address, size_t size) {
  const Lock lock = hold();
  const auto found = reservations().find(address);
  if (found == reservations().end() || found->second != size) return CUDA_ERROR_INVALID_VALUE;
  const auto mapped = library().memory().all().lower_bound(address);
  if (mapped != library().memory().all().end() && mapped->first < address + size) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  reservations().erase(found);
  library().memory().unreserve(address, size);
  return CUDA_SUCCESS;
}

CUresult sim_cuMemMap(CUdeviceptr address, size_t size, size_t offset,
                      CUmemGenericAllocationHandle handle, unsigned long long flags) {
  if (size == 0 || !granular(address) || !granular(size) || !granular(offset) || flags != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const Lock lock = hold();
  PhysicalMemory* memory = find_physical(handle);
  if (memory == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return map_physical(*memory, address, size, offset);
}

CUresult sim_cuMemUnmap(CUdeviceptr address, size_t size) {
  if (size == 0 || !granular(address) || !granular(size)) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  return unmap_range(address, size);
}

CUresult sim_cuMemSetAccess(CUdeviceptr address, size_t size, const CUmemAccessDesc* desc,
                            size_t count) {
  if (size == 0 || !granular(address) || !granular(size) || desc == nullptr || count == 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const Lock lock = hold();
  for (size_t i = 0; i < count; ++i) {
    const bool device = desc[i].location.type == CU_MEM_LOCATION_TYPE_DEVICE;
    if (device && library().device(desc[i].location.id) == nullptr) {
      return CUDA_ERROR_INVALID_DEVICE;
    }
  }
  std::vector<Allocation*> inside;
  for (std::uint64_t at = address; at < address + size;) {
    Allocation* mapping = library().memory().find(at);
    const bool whole = mapping != nullptr && mapping->kind == AllocationKind::kVmm &&
                       mapping->base == at && at + mapping->bytes <= address + size;
    if (!whole) return CUDA_ERROR_INVALID_VALUE;
    inside.push_back(mapping);
    at += mapping->bytes;
  }
  for (Allocation* mapping : inside) {
    for (size_t i = 0; i < count; ++i) mapping->access[desc[i].location.id] = desc[i].flags;
    mapping->accessible = false;
    for (const auto& [device, flags] : mapping->access) {
      if (flags != CU_MEM_ACCESS_FLAGS_PROT_NONE) mapping->accessible = true;
    }
  }
  return CUDA_SUCCESS;
}

CUresult sim_cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location,
                            CUdeviceptr address) {
  if (flags == nullptr || location == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  const Allocation* mapping = library().memory().find(address);
  if (mapping == nullptr || mapping->kind != AllocationKind::kVmm) return CUDA_ERROR_INVALID_VALUE;
  const auto set = mapping->access.find(location->id);
  *flags = static_cast<unsigned long long>(set == mapping->access.end() ? 0 : set->second);
  return CUDA_SUCCESS;
}

CUresult sim_cuMemExportToShareableHandle(void* shareable, CUmemGenericAllocationHandle handle,
                                          CUmemAllocationHandleType type,
                                          unsigned long long flags) {
  if (shareable == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
  const Lock lock = hold();
  const PhysicalMemory* memory = find_physical(handle);
  if (memory == nullptr || memory->block == 0) return CUDA_ERROR_INVALID_VALUE;
  return export_block(memory->block, shareable);
}

CUresult sim_cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle, void* os_handle,
                                            CUmemAllocationHandleType type) {
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
  const Lock lock = hold();
  const int fd = static_cast<int>(reinterpret_cast<std::intptr_t>(os_handle));
  Answer answer;
  const int fds[] = {fd};
  if (library().ask_bytes(Op::kBlockOpenFd, {}, fds, &answer) != CUDA_SUCCESS) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const auto reply = answer.as<BlockReply>();
  if (!reply || answer.fds.empty()) return CUDA_ERROR_SYSTEM_DRIVER_MISMATCH;
  auto memory = std::make_unique<PhysicalMemory>();
  memory->bytes = reply->bytes;
  memory->block = reply->key.block;
  for (const auto& device : library().devices()) {
    if (device->server == reply->device) memory->device = device.get();
  }
  memory->properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  memory->properties.requested_handle_types = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  memory->properties.location = {CU_MEM_LOCATION_TYPE_DEVICE,
                                 memory->device == nullptr ? 0 : memory->device->ordinal};
  memory->file = std::make_shared<MemoryFile>(
      std::move(answer.fds[0]), MemoryFile::Sharing::kShared, library().memory().commit());
  *handle = handle_of(physical_memories().add(std::move(memory)));
  return CUDA_SUCCESS;
}

}  // extern "C"
