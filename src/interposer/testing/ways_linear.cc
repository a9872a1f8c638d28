// Ways to linear memory, from the driver and from its pools.
#include <utility>

#include "interposer/testing/ways.h"

namespace aliquot::interposer::testing {
namespace {

constexpr std::uint64_t kMiB = Share::kMiB;

CUresult free_it(Made& made) { return cuMemFree_v2(made.pointer); }

// The oldest forms have 32 bits.
CUresult take_short(Made& made) {
  CUdeviceptr_v1 address = 0x5a5a;
  const CUresult result = cuMemAlloc(&address, 5 * kMiB);
  made.pointer = address;
  return result;
}
CUresult take_short_pitched(Made& made) {
  CUdeviceptr_v1 address = 0x5a5a;
  unsigned int pitch = 0x5a5a;
  const CUresult result = cuMemAllocPitch(&address, &pitch, 100, 50, 4);
  made.pointer = address;
  made.pitch = pitch;
  return result;
}
CUresult take_pitched(Made& made) {
  std::size_t pitch = 0x5a5a;
  const CUresult result = cuMemAllocPitch_v2(made.address(), &pitch, 100, 50, 4);
  made.pitch = pitch;
  return result;
}

using Allocate = CUresult (*)(CUdeviceptr*, std::size_t, CUmemoryPool, CUstream);
using Free = CUresult (*)(CUdeviceptr, CUstream);

// From a pool of its own, which goes with it.
CUresult take_from_pool(Made& made, Allocate allocate) {
  CUmemPoolProps properties{};
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUmemoryPool pool = nullptr;
  CUresult result = cuMemPoolCreate(&pool, &properties);
  if (result != CUDA_SUCCESS) return result;
  result = allocate(made.address(), kMiB, pool, nullptr);
  if (result == CUDA_SUCCESS)
    *made.as<CUmemoryPool>() = pool;
  else
    cuMemPoolDestroy(pool);
  return result;
}
CUresult give_to_pool(Made& made, Free free) {
  if (made.pointer != 0)
    if (const CUresult freed = free(made.pointer, nullptr); freed != CUDA_SUCCESS) return freed;
  made.pointer = 0;
  return cuMemPoolDestroy(*made.as<CUmemoryPool>());
}

// The device's default pool stays, so what it kept is trimmed.
CUresult give_to_default_pool(Made& made, Free free) {
  if (made.pointer != 0)
    if (const CUresult freed = free(made.pointer, nullptr); freed != CUDA_SUCCESS) return freed;
  made.pointer = 0;
  CUmemoryPool pool = nullptr;
  const CUresult result = cuDeviceGetMemPool(&pool, 0);
  return result == CUDA_SUCCESS ? cuMemPoolTrimTo(pool, 0) : result;
}

}  // namespace

std::vector<Way> linear_ways() {
  return {
      {{"cuMemAlloc_v2"},
       {"cuMemFree_v2"},
       [](Made& m) { return cuMemAlloc_v2(m.address(), 5 * kMiB); },
       free_it},
      {{"cuMemAlloc"},
       {"cuMemFree"},
       take_short,
       [](Made& m) { return cuMemFree(static_cast<CUdeviceptr_v1>(m.pointer)); }},
      {{"cuMemAllocManaged"},
       {"cuMemFree_v2"},
       [](Made& m) { return cuMemAllocManaged(m.address(), kMiB, 1); },
       free_it},
      {{"cuMemAllocPitch_v2"}, {"cuMemFree_v2"}, take_pitched, free_it},
      {{"cuMemAllocPitch"}, {"cuMemFree_v2"}, take_short_pitched, free_it},
      {{"cuIpcGetMemHandle", "cuMemAlloc_v2"},
       {},
       [](Made& m) {
         CUresult result = cuMemAlloc_v2(m.address(), kMiB);
         if (result != CUDA_SUCCESS) return result;
         CUipcMemHandle handle{};
         result = cuIpcGetMemHandle(&handle, m.pointer);
         if (result != CUDA_SUCCESS) cuMemFree_v2(std::exchange(m.pointer, 0x5a5a));
         return result;
       },
       free_it,
       /*keeps_for_good=*/true},
  };
}

std::vector<Way> pool_ways() {
  return {
      {{"cuMemAllocFromPoolAsync", "cuMemPoolCreate"},
       {"cuMemFreeAsync", "cuMemPoolDestroy"},
       [](Made& m) { return take_from_pool(m, cuMemAllocFromPoolAsync); },
       [](Made& m) { return give_to_pool(m, cuMemFreeAsync); }},
      {{"cuMemAllocFromPoolAsync_ptsz", "cuMemPoolCreate"},
       {"cuMemFreeAsync_ptsz", "cuMemPoolDestroy"},
       [](Made& m) { return take_from_pool(m, cuMemAllocFromPoolAsync_ptsz); },
       [](Made& m) { return give_to_pool(m, cuMemFreeAsync_ptsz); }},
      {{"cuMemAllocAsync"},
       {"cuMemFreeAsync", "cuMemPoolTrimTo"},
       [](Made& m) { return cuMemAllocAsync(m.address(), 3 * kMiB, nullptr); },
       [](Made& m) { return give_to_default_pool(m, cuMemFreeAsync); }},
      {{"cuMemAllocAsync_ptsz"},
       {"cuMemFreeAsync_ptsz", "cuMemPoolTrimTo"},
       [](Made& m) { return cuMemAllocAsync_ptsz(m.address(), 3 * kMiB, nullptr); },
       [](Made& m) { return give_to_default_pool(m, cuMemFreeAsync_ptsz); }},
  };
}

}  // namespace aliquot::interposer::testing
