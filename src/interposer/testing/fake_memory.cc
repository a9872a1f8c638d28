// The fake driver's pools, physical memory, arrays, imports, modules and graphs.
#include <algorithm>

#include "interposer/testing/fake_driver_state.h"

namespace aliquot::interposer::testing {

CUmemoryPool Books::default_pool(int device) {
  const auto name = handle_of<CUmemoryPool>(0x1000u + static_cast<unsigned>(device));
  pools.try_emplace(name, FakePool{device, true, false, 0, 0});
  return name;
}

}  // namespace aliquot::interposer::testing

using namespace aliquot::interposer::testing;

#define FAKE extern "C" [[gnu::visibility("default")]]
#define ENTER(name)                       \
  Books& all = books();                   \
  const std::scoped_lock lock(all.mutex); \
  if (const CUresult injected = all.enter(#name)) return injected

namespace {

template <class Handle>
std::uint64_t key(Handle handle) {
  return reinterpret_cast<std::uint64_t>(handle);
}

CUresult allocate(Books& all, CUdeviceptr* address, std::uint64_t bytes, CUmemoryPool name) {
  FakePool& pool = all.pools[name];
  if (!pool.alive) return CUDA_ERROR_INVALID_VALUE;
  const std::uint64_t rounded = (bytes + 511) / 512 * 512;
  pool.used += rounded;
  while (pool.reserved < pool.used)
    pool.reserved +=
        std::max(all.pool_block_bytes, (bytes + (2u << 20) - 1) / (2u << 20) * (2u << 20));
  *address = all.fresh_name();
  all.blocks[*address] = {rounded, nullptr, name};
  return CUDA_SUCCESS;
}

template <class Handle>
CUresult make_object(Books& all, Handle* out, std::uint64_t bytes, bool in_context = true) {
  if (in_context && !all.has_context(current_context())) return CUDA_ERROR_INVALID_CONTEXT;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = handle_of<Handle>(all.fresh_name());
  all.objects[key(*out)] = {bytes, in_context ? current_context() : nullptr};
  return CUDA_SUCCESS;
}
template <class Handle>
CUresult end_object(Books& all, Handle handle) {
  return all.objects.erase(key(handle)) != 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

// An array without memory keeps what it would need beside its books.
std::map<std::uint64_t, std::uint64_t> needs;

std::uint64_t array_need(Books& all, const CUDA_ARRAY3D_DESCRIPTOR& wanted) {
  return std::max<std::uint64_t>(wanted.width, 1) * std::max<std::uint64_t>(wanted.height, 1) *
             std::max<std::uint64_t>(wanted.depth, 1) * wanted.channels * 4 +
         all.array_overhead_bytes;
}
template <class Handle>
CUresult make_array(Books& all, Handle* out, const CUDA_ARRAY3D_DESCRIPTOR& wanted) {
  const std::uint64_t need = array_need(all, wanted);
  const bool without = (wanted.flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING)) != 0;
  const CUresult result = make_object(all, out, without ? 0 : need);
  if (result == CUDA_SUCCESS) needs[key(*out)] = need;
  return result;
}

}  // namespace

FAKE CUresult cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice device) {
  ENTER(cuDeviceGetMemPool);
  *pool = all.default_pool(device);
  return CUDA_SUCCESS;
}
FAKE CUresult cuStreamGetDevice(CUstream, CUdevice* device) {
  ENTER(cuStreamGetDevice);
  if (!all.has_context(current_context())) return CUDA_ERROR_INVALID_CONTEXT;
  *device = all.contexts[current_context()].device;
  return CUDA_SUCCESS;
}
FAKE CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  ENTER(cuStreamIsCapturing);
  *status = all.capturing.contains(stream) ? CU_STREAM_CAPTURE_STATUS_ACTIVE
                                           : CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}
FAKE CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode) {
  ENTER(cuStreamBeginCapture_v2);
  all.capturing.insert(stream);
  return CUDA_SUCCESS;
}
FAKE CUresult cuMemAllocAsync(CUdeviceptr* address, size_t bytes, CUstream stream) {
  ENTER(cuMemAllocAsync);
  if (!all.has_context(current_context())) return CUDA_ERROR_INVALID_CONTEXT;
  if (all.capturing.contains(stream)) {
    *address = all.fresh_name();
    return CUDA_SUCCESS;
  }
  return allocate(all, address, bytes, all.default_pool(all.contexts[current_context()].device));
}
FAKE CUresult cuMemAllocFromPoolAsync(CUdeviceptr* address, size_t bytes, CUmemoryPool pool,
                                      CUstream) {
  ENTER(cuMemAllocFromPoolAsync);
  return allocate(all, address, bytes, pool);
}
FAKE CUresult cuMemFreeAsync(CUdeviceptr address, CUstream) {
  ENTER(cuMemFreeAsync);
  const auto found = all.blocks.find(address);
  if (found == all.blocks.end()) return CUDA_ERROR_INVALID_VALUE;
  FakePool& pool = all.pools[found->second.pool];
  pool.used -= found->second.bytes;
  if (!pool.alive) pool.reserved = pool.used;
  all.blocks.erase(found);
  return CUDA_SUCCESS;
}
FAKE CUresult cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* properties) {
  ENTER(cuMemPoolCreate);
  if (pool == nullptr || properties == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *pool = handle_of<CUmemoryPool>(all.fresh_name());
  all.pools[*pool] = {properties->location.id, true,
                      properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE, 0, 0};
  return CUDA_SUCCESS;
}
FAKE CUresult cuMemPoolDestroy(CUmemoryPool pool) {
  ENTER(cuMemPoolDestroy);
  all.pools[pool].alive = false;
  all.pools[pool].reserved = all.pools[pool].used;
  return CUDA_SUCCESS;
}
FAKE CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep) {
  ENTER(cuMemPoolTrimTo);
  FakePool& trimmed = all.pools[pool];
  trimmed.reserved = std::min(trimmed.reserved, std::max<std::uint64_t>(trimmed.used, keep));
  return CUDA_SUCCESS;
}
// Pools with the default threshold give back what nobody uses.
static CUresult end_work(Books& all) {
  for (auto& [name, pool] : all.pools) pool.reserved = pool.used;
  return CUDA_SUCCESS;
}
FAKE CUresult cuStreamSynchronize(CUstream) {
  ENTER(cuStreamSynchronize);
  return end_work(all);
}
FAKE CUresult cuStreamSynchronize_ptsz(CUstream) {
  ENTER(cuStreamSynchronize_ptsz);
  return end_work(all);
}
FAKE CUresult cuEventSynchronize(CUevent) {
  ENTER(cuEventSynchronize);
  return end_work(all);
}
FAKE CUresult cuCtxSynchronize() {
  ENTER(cuCtxSynchronize);
  return end_work(all);
}
FAKE CUresult cuCtxSynchronize_v2(CUcontext) {
  ENTER(cuCtxSynchronize_v2);
  return end_work(all);
}
FAKE CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  ENTER(cuMemPoolGetAttribute);
  *static_cast<std::uint64_t*>(value) = attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT
                                            ? all.pools[pool].reserved
                                            : all.pools[pool].used;
  return CUDA_SUCCESS;
}

FAKE CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes,
                          const CUmemAllocationProp* properties, unsigned long long) {
  ENTER(cuMemCreate);
  if (handle == nullptr || bytes % (2u << 20) != 0) return CUDA_ERROR_INVALID_VALUE;
  *handle = all.fresh_name();
  all.physical[*handle] = {bytes, 1, properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE};
  return CUDA_SUCCESS;
}
static void drop(Books& all, CUmemGenericAllocationHandle handle) {
  if (--all.physical[handle].references == 0) all.physical.erase(handle);
}
template <class Note>
static CUresult hold(Books& all, CUmemGenericAllocationHandle handle, Note note) {
  if (!all.physical.contains(handle)) return CUDA_ERROR_INVALID_VALUE;
  ++all.physical[handle].references;
  note();
  return CUDA_SUCCESS;
}
FAKE CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  ENTER(cuMemRelease);
  if (!all.physical.contains(handle)) return CUDA_ERROR_INVALID_VALUE;
  drop(all, handle);
  return CUDA_SUCCESS;
}
FAKE CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t,
                       CUmemGenericAllocationHandle handle, unsigned long long) {
  ENTER(cuMemMap);
  if (!all.physical.contains(handle)) return CUDA_ERROR_INVALID_VALUE;
  ++all.physical[handle].references;
  all.mappings[address] = {bytes, handle};
  return CUDA_SUCCESS;
}
FAKE CUresult cuMemUnmap(CUdeviceptr address, size_t bytes) {
  ENTER(cuMemUnmap);
  for (auto at = all.mappings.lower_bound(address);
       at != all.mappings.end() && at->first < address + bytes;) {
    drop(all, at->second.second);
    at = all.mappings.erase(at);
  }
  return CUDA_SUCCESS;
}
FAKE CUresult cuMemExportToShareableHandle(void* shareable, CUmemGenericAllocationHandle handle,
                                           CUmemAllocationHandleType, unsigned long long) {
  ENTER(cuMemExportToShareableHandle);
  if (!all.physical.contains(handle)) return CUDA_ERROR_INVALID_VALUE;
  *static_cast<int*>(shareable) = 7;
  return CUDA_SUCCESS;
}
FAKE CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* address) {
  ENTER(cuMemRetainAllocationHandle);
  const auto found = all.mappings.find(key(address));
  if (found == all.mappings.end()) return CUDA_ERROR_INVALID_VALUE;
  *handle = found->second.second;
  ++all.physical[*handle].references;
  return CUDA_SUCCESS;
}

// NOLINTNEXTLINE(readability-function-size): the driver's own parameters
FAKE CUresult cuMulticastBindMem_v2(CUmemGenericAllocationHandle multicast, CUdevice, size_t at,
                                    CUmemGenericAllocationHandle memory, size_t, size_t,
                                    unsigned long long) {
  ENTER(cuMulticastBindMem_v2);
  return hold(all, memory, [&] { all.bound[{multicast, at}] = memory; });
}
FAKE CUresult cuMulticastBindAddr_v2(CUmemGenericAllocationHandle multicast, CUdevice, size_t at,
                                     CUdeviceptr memory, size_t, unsigned long long) {
  ENTER(cuMulticastBindAddr_v2);
  const auto found = all.mappings.find(memory);
  if (found == all.mappings.end()) return CUDA_ERROR_INVALID_VALUE;
  const CUmemGenericAllocationHandle handle = found->second.second;
  return hold(all, handle, [&] { all.bound[{multicast, at}] = handle; });
}
FAKE CUresult cuMulticastUnbind(CUmemGenericAllocationHandle multicast, CUdevice, size_t at,
                                size_t) {
  ENTER(cuMulticastUnbind);
  const auto found = all.bound.find({multicast, at});
  if (found == all.bound.end()) return CUDA_SUCCESS;
  drop(all, found->second);
  all.bound.erase(found);
  return CUDA_SUCCESS;
}
FAKE CUresult cuMemMapArrayAsync(CUarrayMapInfo* list, unsigned int count, CUstream) {
  ENTER(cuMemMapArrayAsync);
  for (unsigned i = 0; i < count; ++i)
    if (const CUresult result =
            hold(all, list[i].handle, [&] { all.tiles.emplace(list[i].array, list[i].handle); }))
      return result;
  return CUDA_SUCCESS;
}

FAKE CUresult cuArrayCreate_v2(CUarray* array, const CUDA_ARRAY_DESCRIPTOR* wanted) {
  ENTER(cuArrayCreate_v2);
  return make_array(all, array,
                    {wanted->width, wanted->height, 0, wanted->format, wanted->channels, 0});
}
FAKE CUresult cuArray3DCreate_v2(CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR* wanted) {
  ENTER(cuArray3DCreate_v2);
  return make_array(all, array, *wanted);
}
FAKE CUresult cuArrayDestroy(CUarray array) {
  ENTER(cuArrayDestroy);
  for (auto [at, end] = all.tiles.equal_range(array); at != end; ++at) drop(all, at->second);
  all.tiles.erase(array);
  return end_object(all, array);
}
FAKE CUresult cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS* out, CUarray array,
                                           CUdevice) {
  ENTER(cuArrayGetMemoryRequirements);
  out->bytes = needs[key(array)];
  return CUDA_SUCCESS;
}
FAKE CUresult cuMipmappedArrayCreate(CUmipmappedArray* array, const CUDA_ARRAY3D_DESCRIPTOR* wanted,
                                     unsigned int) {
  ENTER(cuMipmappedArrayCreate);
  return make_array(all, array, *wanted);
}
FAKE CUresult cuMipmappedArrayDestroy(CUmipmappedArray array) {
  ENTER(cuMipmappedArrayDestroy);
  return end_object(all, array);
}
FAKE CUresult cuMipmappedArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS* out,
                                                    CUmipmappedArray array, CUdevice) {
  ENTER(cuMipmappedArrayGetMemoryRequirements);
  out->bytes = needs[key(array)];
  return CUDA_SUCCESS;
}
FAKE CUresult cuImportExternalMemory(CUexternalMemory* memory,
                                     const CUDA_EXTERNAL_MEMORY_HANDLE_DESC* description) {
  ENTER(cuImportExternalMemory);
  return make_object(all, memory, description->bytes);
}
FAKE CUresult cuDestroyExternalMemory(CUexternalMemory memory) {
  ENTER(cuDestroyExternalMemory);
  return end_object(all, memory);
}

// The least that an image can be charged: what the share charges is an estimate anyway.
constexpr std::uint64_t kImageBytes = 512;
FAKE CUresult cuModuleLoadData(CUmodule* module, const void*) {
  ENTER(cuModuleLoadData);
  return make_object(all, module, kImageBytes);
}
FAKE CUresult cuModuleUnload(CUmodule module) {
  ENTER(cuModuleUnload);
  return end_object(all, module);
}
// NOLINTNEXTLINE(readability-function-size): the driver's own parameters
FAKE CUresult cuLibraryLoadData(CUlibrary* library, const void*, CUjit_option*, void**,
                                unsigned int, CUlibraryOption*, void**, unsigned int) {
  ENTER(cuLibraryLoadData);
  return make_object(all, library, kImageBytes, false);
}
FAKE CUresult cuLibraryUnload(CUlibrary library) {
  ENTER(cuLibraryUnload);
  return end_object(all, library);
}

FAKE CUresult cuGraphCreate(CUgraph* graph, unsigned int) {
  ENTER(cuGraphCreate);
  *graph = handle_of<CUgraph>(all.fresh_name());
  all.graphs[key(*graph)];
  return CUDA_SUCCESS;
}
FAKE CUresult cuGraphAddMemAllocNode(CUgraphNode* node, CUgraph graph, const CUgraphNode*, size_t,
                                     CUDA_MEM_ALLOC_NODE_PARAMS* params) {
  ENTER(cuGraphAddMemAllocNode);
  auto& nodes = all.graphs[key(graph)].nodes;
  nodes.push_back(*params);
  *node = handle_of<CUgraphNode>(key(graph) + nodes.size());
  return CUDA_SUCCESS;
}
constexpr std::uint64_t kFirstKernel = 0x800;  // nodes' handles: the graph's, and their place
FAKE CUresult cuGraphAddKernelNode_v2(CUgraphNode* node, CUgraph graph, const CUgraphNode*, size_t,
                                      const CUDA_KERNEL_NODE_PARAMS* params) {
  ENTER(cuGraphAddKernelNode_v2);
  auto& kernels = all.graphs[key(graph)].kernels;
  kernels.push_back(*params);
  *node = handle_of<CUgraphNode>(key(graph) + kFirstKernel + kernels.size());
  return CUDA_SUCCESS;
}
FAKE CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS* params) {
  ENTER(cuGraphKernelNodeGetParams_v2);
  const std::uint64_t index = key(node) & 0xfff;
  *params = all.graphs[key(node) - index].kernels[index - kFirstKernel - 1];
  return CUDA_SUCCESS;
}
FAKE CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode* nodes, size_t* count) {
  ENTER(cuGraphGetNodes);
  const FakeGraph& known = all.graphs[key(graph)];
  *count = known.nodes.size() + known.kernels.size();
  if (nodes == nullptr) return CUDA_SUCCESS;
  for (std::size_t i = 0; i < *count; ++i) {
    const bool kernel = i >= known.nodes.size();
    nodes[i] = handle_of<CUgraphNode>(key(graph) + 1 +
                                      (kernel ? kFirstKernel + i - known.nodes.size() : i));
  }
  return CUDA_SUCCESS;
}
FAKE CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType* type) {
  ENTER(cuGraphNodeGetType);
  *type =
      (key(node) & 0xfff) > kFirstKernel ? CU_GRAPH_NODE_TYPE_KERNEL : CU_GRAPH_NODE_TYPE_MEM_ALLOC;
  return CUDA_SUCCESS;
}
FAKE CUresult cuGraphMemAllocNodeGetParams(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS* params) {
  ENTER(cuGraphMemAllocNodeGetParams);
  const std::uint64_t index = key(node) & 0xfff;
  *params = all.graphs[key(node) - index].nodes[index - 1];
  return CUDA_SUCCESS;
}
FAKE CUresult cuGraphInstantiateWithFlags(CUgraphExec* instance, CUgraph graph,
                                          unsigned long long) {
  ENTER(cuGraphInstantiateWithFlags);
  *instance = handle_of<CUgraphExec>(all.fresh_name());
  std::uint64_t bytes = 0;
  for (const auto& node : all.graphs[key(graph)].nodes)
    bytes += (node.bytes + (2u << 20) - 1) / (2u << 20) * (2u << 20);
  all.instantiated[key(*instance)] = bytes;
  return CUDA_SUCCESS;
}
FAKE CUresult cuGraphLaunch(CUgraphExec instance, CUstream) {
  ENTER(cuGraphLaunch);
  all.graph_kept_bytes = std::max(all.graph_kept_bytes, all.instantiated[key(instance)]);
  return CUDA_SUCCESS;
}
FAKE CUresult cuGraphExecDestroy(CUgraphExec instance) {
  ENTER(cuGraphExecDestroy);
  return all.instantiated.erase(key(instance)) != 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
FAKE CUresult cuDeviceGetGraphMemAttribute(CUdevice, CUgraphMem_attribute, void* value) {
  ENTER(cuDeviceGetGraphMemAttribute);
  *static_cast<std::uint64_t*>(value) = all.graph_kept_bytes;
  return CUDA_SUCCESS;
}
FAKE CUresult cuDeviceGraphMemTrim(CUdevice) {
  ENTER(cuDeviceGraphMemTrim);
  all.graph_kept_bytes = 0;
  return CUDA_SUCCESS;
}
