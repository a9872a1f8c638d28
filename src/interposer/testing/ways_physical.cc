// Ways to physical memory, and the uses that keep it: mappings, bindings, tiles, exports.
#include <utility>

#include "interposer/testing/ways.h"

namespace aliquot::interposer::testing {
namespace {

constexpr std::uint64_t kMiB = Share::kMiB;
constexpr CUdeviceptr kAddress = 0x1'0000'0000;
constexpr CUmemGenericAllocationHandle kMulticast = 77;
constexpr std::size_t kBytes = 4 * kMiB;

CUresult create(CUmemGenericAllocationHandle* handle) {
  CUmemAllocationProp properties{};
  properties.type = 1;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  return cuMemCreate(handle, kBytes, &properties, 0);
}

// Memory of which `use` is made, and which is released when that fails.
CUresult take_used(Made& made, const std::function<CUresult(Made&)>& use) {
  CUresult result = create(&made.handle);
  if (result != CUDA_SUCCESS) return result;
  result = use(made);
  if (result != CUDA_SUCCESS) cuMemRelease(std::exchange(made.handle, 0x5a5a));
  return result;
}
CUresult release(Made& made) { return cuMemRelease(made.handle); }
CUresult map(Made& made) { return cuMemMap(kAddress, kBytes, 0, made.handle, 0); }

// What ends the use, once; then the handle.
CUresult give_used(Made& made, CUresult (*end)()) {
  if (made.pitch != 0)
    if (const CUresult ended = end(); ended != CUDA_SUCCESS) return ended;
  made.pitch = 0;
  return release(made);
}
CUresult unmap() { return cuMemUnmap(kAddress, kBytes); }
CUresult unbind() { return cuMulticastUnbind(kMulticast, 0, 0, kBytes); }
CUresult unmap_and_unbind() {
  const CUresult result = unmap();
  return result == CUDA_SUCCESS ? unbind() : result;
}

Way bound(const char* row, const std::function<CUresult(Made&)>& bind) {
  return {{row, "cuMemCreate"},
          {"cuMulticastUnbind", "cuMemRelease"},
          [bind](Made& m) { return take_used(m, bind); },
          [](Made& m) { return give_used(m, unbind); }};
}
Way bound_by_address(const char* row, CUresult (*bind)()) {
  return {{row, "cuMemMap", "cuMemCreate"},
          {"cuMemUnmap", "cuMulticastUnbind", "cuMemRelease"},
          [bind](Made& made) {
            return take_used(made, [bind](Made& m) {
              CUresult result = map(m);
              if (result != CUDA_SUCCESS) return result;
              result = bind();
              if (result != CUDA_SUCCESS) unmap();
              return result;
            });
          },
          [](Made& m) { return give_used(m, unmap_and_unbind); }};
}

// A sparse array with one tile, which goes with the array.
Way tiled(const char* row, CUresult (*map_tiles)(CUarrayMapInfo*, unsigned int, CUstream)) {
  return {{row, "cuArray3DCreate_v2", "cuMemCreate"},
          {"cuArrayDestroy", "cuMemRelease"},
          [map_tiles](Made& made) {
            return take_used(made, [map_tiles](Made& m) {
              const CUDA_ARRAY3D_DESCRIPTOR wanted{
                  1024, 1024, 0, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_SPARSE};
              CUresult result = cuArray3DCreate_v2(m.as<CUarray>(), &wanted);
              if (result != CUDA_SUCCESS) return result;
              CUarrayMapInfo tile{};
              tile.array = *m.as<CUarray>();
              tile.operation = 1;
              tile.handle = m.handle;
              result = map_tiles(&tile, 1, nullptr);
              if (result != CUDA_SUCCESS)
                cuArrayDestroy(static_cast<CUarray>(std::exchange(m.object, nullptr)));
              return result;
            });
          },
          [](Made& m) {
            if (m.object != nullptr)
              if (const CUresult ended = cuArrayDestroy(*m.as<CUarray>()); ended != CUDA_SUCCESS)
                return ended;
            m.object = nullptr;
            return release(m);
          }};
}

CUresult retain(Made& made) {
  void* const at = reinterpret_cast<void*>(kAddress);
  CUmemGenericAllocationHandle again = 0;
  CUresult result = map(made);
  if (result != CUDA_SUCCESS) return result;
  result = cuMemRetainAllocationHandle(&again, at);
  if (result != CUDA_SUCCESS) unmap();
  return result;
}

}  // namespace

std::vector<Way> physical_ways() {
  return {
      {{"cuMemCreate"}, {"cuMemRelease"}, [](Made& m) { return create(&m.handle); }, release},
      {{"cuMemMap", "cuMemCreate"},
       {"cuMemUnmap", "cuMemRelease"},
       [](Made& m) { return take_used(m, map); },
       [](Made& m) { return give_used(m, unmap); }},
      bound("cuMulticastBindMem",
            [](Made& m) { return cuMulticastBindMem(kMulticast, 0, m.handle, 0, kBytes, 0); }),
      bound(
          "cuMulticastBindMem_v2",
          [](Made& m) { return cuMulticastBindMem_v2(kMulticast, 0, 0, m.handle, 0, kBytes, 0); }),
      bound_by_address("cuMulticastBindAddr",
                       [] { return cuMulticastBindAddr(kMulticast, 0, kAddress, kBytes, 0); }),
      bound_by_address(
          "cuMulticastBindAddr_v2",
          [] { return cuMulticastBindAddr_v2(kMulticast, 0, 0, kAddress, kBytes, 0); }),
      tiled("cuMemMapArrayAsync", cuMemMapArrayAsync),
      tiled("cuMemMapArrayAsync_ptsz", cuMemMapArrayAsync_ptsz),
      {{"cuMemRetainAllocationHandle", "cuMemMap", "cuMemCreate"},
       {"cuMemUnmap", "cuMemRelease"},
       [](Made& m) { return take_used(m, retain); },
       [](Made& m) {
         const CUresult result = give_used(m, unmap);
         return result == CUDA_SUCCESS ? release(m) : result;  // the handle was given out twice
       }},
      {{"cuMemExportToShareableHandle", "cuMemCreate"},
       {"cuMemRelease"},
       [](Made& made) {
         return take_used(made, [](Made& m) {
           int descriptor = -1;
           return cuMemExportToShareableHandle(&descriptor, m.handle, 1, 0);
         });
       },
       release,
       /*keeps_for_good=*/true},
  };
}

}  // namespace aliquot::interposer::testing
