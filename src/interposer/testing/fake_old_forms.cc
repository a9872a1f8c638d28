// The fake driver's older and per-thread forms: as the newest ones, with 32 bits where they had
// those. Each counts and fails under its own name, then goes on as the newest.
#include "interposer/testing/fake_driver_state.h"

using namespace aliquot::interposer::testing;

#define FAKE extern "C" [[gnu::visibility("default")]]
// Not under the lock: the newest form takes it anew.
#define FIRST_AS(name)                                                   \
  {                                                                      \
    const std::scoped_lock lock(books().mutex);                          \
    if (const CUresult injected = books().enter(#name)) return injected; \
  }

#define ALIQUOT_ENTRY(symbol, base, since, until, kind, params, args) \
  extern "C" CUresult symbol params;
#include "driver_abi/cuda_entry_points.def"

namespace {

// The block's name in 32 bits, as a driver of that time gives.
CUresult shorten(CUdeviceptr given, CUdeviceptr_v1* out) {
  Books& all = books();
  const std::scoped_lock lock(all.mutex);
  auto block = all.blocks.extract(given);
  block.key() = all.fresh_short_name();
  *out = static_cast<CUdeviceptr_v1>(block.key());
  all.blocks.insert(std::move(block));
  return CUDA_SUCCESS;
}

}  // namespace

FAKE CUresult cuMemAlloc(CUdeviceptr_v1* address, unsigned int bytes) {
  FIRST_AS(cuMemAlloc);
  CUdeviceptr whole = 0;
  const CUresult result = cuMemAlloc_v2(&whole, bytes);
  return result == CUDA_SUCCESS ? shorten(whole, address) : result;
}
FAKE CUresult cuMemAllocPitch(CUdeviceptr_v1* address, unsigned int* pitch, unsigned int width,
                              unsigned int height, unsigned int element) {
  FIRST_AS(cuMemAllocPitch);
  CUdeviceptr whole = 0;
  size_t chosen = 0;
  const CUresult result = cuMemAllocPitch_v2(&whole, &chosen, width, height, element);
  if (result != CUDA_SUCCESS) return result;
  *pitch = static_cast<unsigned int>(chosen);
  return shorten(whole, address);
}
FAKE CUresult cuMemFree(CUdeviceptr_v1 address) {
  FIRST_AS(cuMemFree);
  return cuMemFree_v2(address);
}
FAKE CUresult cuMemAllocAsync_ptsz(CUdeviceptr* address, size_t bytes, CUstream stream) {
  FIRST_AS(cuMemAllocAsync_ptsz);
  return cuMemAllocAsync(address, bytes, stream);
}
FAKE CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr* address, size_t bytes, CUmemoryPool pool,
                                           CUstream stream) {
  FIRST_AS(cuMemAllocFromPoolAsync_ptsz);
  return cuMemAllocFromPoolAsync(address, bytes, pool, stream);
}
FAKE CUresult cuMemFreeAsync_ptsz(CUdeviceptr address, CUstream stream) {
  FIRST_AS(cuMemFreeAsync_ptsz);
  return cuMemFreeAsync(address, stream);
}

FAKE CUresult cuArrayCreate(CUarray* array, const CUDA_ARRAY_DESCRIPTOR_v1* wanted) {
  FIRST_AS(cuArrayCreate);
  const CUDA_ARRAY_DESCRIPTOR now{wanted->width, wanted->height, wanted->format, wanted->channels};
  return cuArrayCreate_v2(array, &now);
}
FAKE CUresult cuArray3DCreate(CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR_v1* wanted) {
  FIRST_AS(cuArray3DCreate);
  const CUDA_ARRAY3D_DESCRIPTOR now{wanted->width,  wanted->height,   wanted->depth,
                                    wanted->format, wanted->channels, wanted->flags};
  return cuArray3DCreate_v2(array, &now);
}

FAKE CUresult cuCtxCreate(CUcontext* context, unsigned int flags, CUdevice device) {
  FIRST_AS(cuCtxCreate);
  return cuCtxCreate_v2(context, flags, device);
}
FAKE CUresult cuCtxCreate_v3(CUcontext* context, CUexecAffinityParam*, int, unsigned int flags,
                             CUdevice device) {
  FIRST_AS(cuCtxCreate_v3);
  return cuCtxCreate_v2(context, flags, device);
}
FAKE CUresult cuCtxDestroy(CUcontext context) {
  FIRST_AS(cuCtxDestroy);
  return cuCtxDestroy_v2(context);
}
FAKE CUresult cuCtxDetach(CUcontext context) {
  FIRST_AS(cuCtxDetach);
  {
    const std::scoped_lock lock(books().mutex);
    if (books().other_users > 0) {
      --books().other_users;
      return CUDA_SUCCESS;
    }
  }
  return cuCtxDestroy_v2(context);
}
FAKE CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
  FIRST_AS(cuDevicePrimaryCtxRelease);
  return cuDevicePrimaryCtxRelease_v2(device);
}
FAKE CUresult cuDevicePrimaryCtxReset(CUdevice device) {
  FIRST_AS(cuDevicePrimaryCtxReset);
  return cuDevicePrimaryCtxReset_v2(device);
}

FAKE CUresult cuModuleLoad(CUmodule* module, const char*) {
  FIRST_AS(cuModuleLoad);
  return cuModuleLoadData(module, "");
}
FAKE CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned int, CUjit_option*,
                                 void**) {
  FIRST_AS(cuModuleLoadDataEx);
  return cuModuleLoadData(module, image);
}
FAKE CUresult cuModuleLoadFatBinary(CUmodule* module, const void* image) {
  FIRST_AS(cuModuleLoadFatBinary);
  return cuModuleLoadData(module, image);
}
// NOLINTNEXTLINE(readability-function-size): the driver's own parameters
FAKE CUresult cuLibraryLoadFromFile(CUlibrary* library, const char*, CUjit_option*, void**,
                                    unsigned int, CUlibraryOption*, void**, unsigned int) {
  FIRST_AS(cuLibraryLoadFromFile);
  return cuLibraryLoadData(library, "", nullptr, nullptr, 0, nullptr, nullptr, 0);
}

FAKE CUresult cuGraphInstantiate(CUgraphExec* instance, CUgraph graph, CUgraphNode*, char*,
                                 size_t) {
  FIRST_AS(cuGraphInstantiate);
  return cuGraphInstantiateWithFlags(instance, graph, 0);
}
FAKE CUresult cuGraphInstantiate_v2(CUgraphExec* instance, CUgraph graph, CUgraphNode*, char*,
                                    size_t) {
  FIRST_AS(cuGraphInstantiate_v2);
  return cuGraphInstantiateWithFlags(instance, graph, 0);
}
FAKE CUresult cuGraphInstantiateWithParams(CUgraphExec* instance, CUgraph graph,
                                           CUDA_GRAPH_INSTANTIATE_PARAMS*) {
  FIRST_AS(cuGraphInstantiateWithParams);
  return cuGraphInstantiateWithFlags(instance, graph, 0);
}
FAKE CUresult cuGraphInstantiateWithParams_ptsz(CUgraphExec* instance, CUgraph graph,
                                                CUDA_GRAPH_INSTANTIATE_PARAMS*) {
  FIRST_AS(cuGraphInstantiateWithParams_ptsz);
  return cuGraphInstantiateWithFlags(instance, graph, 0);
}

// Bindings of physical memory that the newest forms name with a device.
FAKE CUresult cuMulticastBindMem(CUmemGenericAllocationHandle multicast, size_t at,
                                 CUmemGenericAllocationHandle memory, size_t offset, size_t bytes,
                                 unsigned long long flags) {
  FIRST_AS(cuMulticastBindMem);
  return cuMulticastBindMem_v2(multicast, 0, at, memory, offset, bytes, flags);
}
FAKE CUresult cuMulticastBindAddr(CUmemGenericAllocationHandle multicast, size_t at,
                                  CUdeviceptr memory, size_t bytes, unsigned long long flags) {
  FIRST_AS(cuMulticastBindAddr);
  return cuMulticastBindAddr_v2(multicast, 0, at, memory, bytes, flags);
}
FAKE CUresult cuMemMapArrayAsync_ptsz(CUarrayMapInfo* list, unsigned int count, CUstream stream) {
  FIRST_AS(cuMemMapArrayAsync_ptsz);
  return cuMemMapArrayAsync(list, count, stream);
}
