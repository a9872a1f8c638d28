// Memory imported by descriptor (what cuMemExportToShareableHandle of any process gave out), and
// memory of handles mapped behind arrays that were made without.
#include <unistd.h>

#include <algorithm>

#include "simdriver/cuda/array_objects.h"
#include "simdriver/cuda/bodies.h"
#include "simdriver/cuda/physical.h"
#include "simdriver/cuda/requests.h"

using namespace aliquot::simdriver;  // NOLINT(google-build-using-namespace)

namespace {

struct ExternalMemory {
  BlockKey key{};
  std::uint64_t bytes = 0;
  DeviceView* device = nullptr;
  std::shared_ptr<MemoryFile> file;
};

Registry<ExternalMemory>& externals() {
  static auto* const all = new Registry<ExternalMemory>;  // NOLINT: lives for ever
  return *all;
}

CUresult import(int fd, std::unique_ptr<ExternalMemory>& made) {
  Answer answer;
  const int fds[] = {fd};
  if (library().ask_bytes(Op::kBlockOpenFd, {}, fds, &answer) != CUDA_SUCCESS) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  const auto reply = answer.as<BlockReply>();
  if (!reply || answer.fds.empty()) return CUDA_ERROR_SYSTEM_DRIVER_MISMATCH;
  made = std::make_unique<ExternalMemory>();
  made->key = reply->key;
  made->bytes = reply->bytes;
  for (const auto& device : library().devices()) {
    if (device->server == reply->device) made->device = device.get();
  }
  if (made->device == nullptr) return CUDA_ERROR_INVALID_DEVICE;  // of a GPU that is not visible
  made->file = std::make_shared<MemoryFile>(std::move(answer.fds[0]), MemoryFile::Sharing::kShared,
                                            library().memory().commit());
  return CUDA_SUCCESS;
}

// A whole array of one level; the array's place becomes that of the mapped memory.
CUresult map_array(const CUarrayMapInfo& info) {
  Array* array = info.resource_type == CU_RESOURCE_TYPE_ARRAY ? find_array(info.array) : nullptr;
  if (array == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  if ((array->shape.flags & CUDA_ARRAY3D_DEFERRED_MAPPING) == 0) return CUDA_ERROR_INVALID_VALUE;
  Memory& memory = library().memory();
  const std::uint64_t whole = (array->bytes() + kGranuleBytes - 1) / kGranuleBytes * kGranuleBytes;
  if (info.operation == CU_MEM_OPERATION_TYPE_UNMAP) {
    if (array->base == 0) return CUDA_ERROR_INVALID_VALUE;
    const Allocation* mapping = memory.find(array->base);
    PhysicalMemory* physical = mapping == nullptr ? nullptr : find_physical(mapping->handle);
    memory.remove(array->base);
    memory.unreserve(array->base, whole);
    array->base = 0;
    array->owns_memory = true;
    if (physical == nullptr) return CUDA_SUCCESS;
    --physical->mappings;
    drop_if_unused(*physical);
    return CUDA_SUCCESS;
  }
  PhysicalMemory* physical = find_physical(info.handle);
  if (physical == nullptr || array->base != 0 || info.offset > physical->bytes ||
      array->bytes() > physical->bytes - info.offset) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  Allocation mapping;
  mapping.base = memory.reserve(whole, kGranuleBytes);
  if (mapping.base == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  mapping.bytes = array->bytes();
  mapping.kind = AllocationKind::kArray;
  mapping.device = physical->device;
  mapping.file = physical->file;
  mapping.file_offset = physical->file_offset + info.offset;
  mapping.handle = info.handle;
  mapping.id = library().next_id();
  array->base = mapping.base;
  array->owns_memory = false;
  memory.add(std::move(mapping));
  ++physical->mappings;
  return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

CUresult sim_cuImportExternalMemory(CUexternalMemory* out,
                                    const CUDA_EXTERNAL_MEMORY_HANDLE_DESC* description) {
  if (out == nullptr || description == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (description->type != CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  const Lock lock = hold();
  std::unique_ptr<ExternalMemory> made;
  if (const CUresult result = import(description->fd, made)) return result;
  close(description->fd);  // the driver's from here on, as the real one has it
  *out = reinterpret_cast<CUexternalMemory>(externals().add(std::move(made)));
  return CUDA_SUCCESS;
}

CUresult sim_cuExternalMemoryGetMappedBuffer(CUdeviceptr* out, CUexternalMemory handle,
                                             const CUDA_EXTERNAL_MEMORY_BUFFER_DESC* buffer) {
  if (out == nullptr || buffer == nullptr || buffer->bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  const ExternalMemory* external = externals().find(handle);
  if (external == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (buffer->offset > external->bytes || buffer->bytes > external->bytes - buffer->offset) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (library().ask(Op::kBlockAddHold, BlockId{external->key.block}) != CUDA_SUCCESS) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  Memory& memory = library().memory();
  Allocation mapping;
  const std::uint64_t whole = (buffer->bytes + kGranuleBytes - 1) / kGranuleBytes * kGranuleBytes;
  mapping.base = memory.reserve(whole, kGranuleBytes);
  if (mapping.base == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  mapping.bytes = buffer->bytes;
  mapping.kind = AllocationKind::kLinear;  // freed with cuMemFree, which lets the hold go
  mapping.device = external->device;
  mapping.file = external->file;
  mapping.file_offset = buffer->offset;
  mapping.block = external->key.block;
  mapping.id = library().next_id();
  *out = mapping.base;
  memory.add(std::move(mapping));
  return CUDA_SUCCESS;
}

CUresult sim_cuDestroyExternalMemory(CUexternalMemory handle) {
  const Lock lock = hold();
  const auto external = externals().remove(handle);
  if (external == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  library().ask(Op::kBlockRelease, BlockId{external->key.block});
  return CUDA_SUCCESS;
}

CUresult sim_cuMemMapArrayAsync(CUarrayMapInfo* infos, unsigned int count, CUstream handle) {
  if (infos == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  Lock lock = hold();
  Stream* stream = nullptr;
  if (const CUresult result = resolve_stream(lock, handle, stream)) return result;
  if (const CUresult result = refuse_capture(*stream)) return result;
  for (unsigned i = 0; i < count; ++i) {
    if (const CUresult result = map_array(infos[i])) return result;
  }
  return CUDA_SUCCESS;
}

}  // extern "C"
