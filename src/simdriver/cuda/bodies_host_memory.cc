// Pinned memory of the host: a device reaches it at the host's own address.
#include <sys/mman.h>

#include "simdriver/cuda/bodies.h"
#include "simdriver/cuda/library.h"
#include "simdriver/cuda/work.h"

using namespace aliquot::simdriver;  // NOLINT(google-build-using-namespace)

namespace {

constexpr unsigned kAllocFlags =
    CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
constexpr unsigned kRegisterFlags = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP |
                                    CU_MEMHOSTREGISTER_IOMEMORY | CU_MEMHOSTREGISTER_READ_ONLY;

CUresult allocate(void** pp, size_t bytes, unsigned flags) {
  if (pp == nullptr || bytes == 0 || (flags & ~kAllocFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  Context* context = nullptr;
  if (const CUresult result = current_context(context)) return result;
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  HostRange range{at, bytes, flags, false, context, library().next_id()};
  library().memory().host_ranges()[reinterpret_cast<std::uintptr_t>(at)] = range;
  *pp = at;
  return CUDA_SUCCESS;
}

HostRange* starts_at(void* p) {
  HostRange* range = library().memory().find_host(p);
  return range != nullptr && range->base == p ? range : nullptr;
}

}  // namespace

extern "C" {

CUresult sim_cuMemHostAlloc(void** pp, size_t bytes, unsigned int flags) {
  return allocate(pp, bytes, flags);
}
CUresult sim_cuMemAllocHost_v2(void** pp, size_t bytes) { return allocate(pp, bytes, 0); }
CUresult sim_cuMemAllocHost(void** pp, unsigned int bytes) { return allocate(pp, bytes, 0); }

CUresult sim_cuMemFreeHost(void* p) {
  Lock lock = hold();
  HostRange* range = starts_at(p);
  if (range == nullptr || range->registered) return CUDA_ERROR_INVALID_VALUE;
  if (library().contexts.find(range->context) != nullptr) synchronise(lock, *range->context);
  range = starts_at(p);
  if (range == nullptr) return CUDA_ERROR_INVALID_VALUE;
  munmap(range->base, range->bytes);
  library().memory().host_ranges().erase(reinterpret_cast<std::uintptr_t>(p));
  return CUDA_SUCCESS;
}

CUresult sim_cuMemHostRegister_v2(void* p, size_t bytes, unsigned int flags) {
  if (p == nullptr || bytes == 0 || (flags & ~kRegisterFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  Context* context = nullptr;
  if (const CUresult result = current_context(context)) return result;
  Memory& memory = library().memory();
  const auto at = reinterpret_cast<std::uintptr_t>(p);
  const auto next = memory.host_ranges().lower_bound(at);
  const bool overlaps_next = next != memory.host_ranges().end() && next->first < at + bytes;
  if (memory.find_host(p) != nullptr || overlaps_next) {
    return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  }
  memory.host_ranges()[at] = {p, bytes, flags, true, context, library().next_id()};
  return CUDA_SUCCESS;
}
CUresult sim_cuMemHostRegister(void* p, size_t bytes, unsigned int flags) {
  return sim_cuMemHostRegister_v2(p, bytes, flags);
}

CUresult sim_cuMemHostUnregister(void* p) {
  const Lock lock = hold();
  const HostRange* range = starts_at(p);
  if (range == nullptr || !range->registered) return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  library().memory().host_ranges().erase(reinterpret_cast<std::uintptr_t>(p));
  return CUDA_SUCCESS;
}

CUresult sim_cuMemHostGetDevicePointer_v2(CUdeviceptr* address, void* p, unsigned int flags) {
  if (address == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  if (library().memory().find_host(p) == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *address = reinterpret_cast<std::uintptr_t>(p);
  return CUDA_SUCCESS;
}

CUresult sim_cuMemHostGetFlags(unsigned int* flags, void* p) {
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  const HostRange* range = library().memory().find_host(p);
  if (range == nullptr || range->registered) return CUDA_ERROR_INVALID_VALUE;
  *flags = range->flags | CU_MEMHOSTALLOC_DEVICEMAP;  // mapped whatever was asked (UVA)
  return CUDA_SUCCESS;
}

}  // extern "C"
