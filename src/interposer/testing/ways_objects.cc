// Ways to arrays, imported memory, modules, libraries, graphs and contexts.
#include "interposer/testing/ways.h"

namespace aliquot::interposer::testing {
namespace {

constexpr std::uint64_t kMiB = Share::kMiB;

const CUDA_ARRAY_DESCRIPTOR kFlat{64, 64, CU_AD_FORMAT_FLOAT, 1};
const CUDA_ARRAY_DESCRIPTOR_v1 kOldFlat{64, 64, CU_AD_FORMAT_FLOAT, 1};
const CUDA_ARRAY3D_DESCRIPTOR kCube{64, 64, 64, CU_AD_FORMAT_FLOAT, 1, 0};
const CUDA_ARRAY3D_DESCRIPTOR_v1 kOldCube{64, 64, 64, CU_AD_FORMAT_FLOAT, 1, 0};
const CUDA_EXTERNAL_MEMORY_HANDLE_DESC kForeign = [] {
  CUDA_EXTERNAL_MEMORY_HANDLE_DESC description{};
  description.bytes = 3 * kMiB;
  return description;
}();
constexpr const char* kImage = "ptx";
constexpr const char* kFile = "/proc/self/exe";  // any file: the fake does not read it

Way array(const char* row, CUresult (*create)(CUarray*)) {
  return {{row},
          {"cuArrayDestroy"},
          [create](Made& m) { return create(m.as<CUarray>()); },
          [](Made& m) { return cuArrayDestroy(*m.as<CUarray>()); }};
}
Way module(const char* row, CUresult (*load)(CUmodule*)) {
  return {{row},
          {"cuModuleUnload"},
          [load](Made& m) { return load(m.as<CUmodule>()); },
          [](Made& m) { return cuModuleUnload(*m.as<CUmodule>()); }};
}
Way library(const char* row, CUresult (*load)(CUlibrary*)) {
  return {{row},
          {"cuLibraryUnload"},
          [load](Made& m) { return load(m.as<CUlibrary>()); },
          [](Made& m) { return cuLibraryUnload(*m.as<CUlibrary>()); }};
}

// Launched, so that the driver keeps memory beyond the graph's end, until it is trimmed.
Way graph(const char* row, CUresult (*instantiate)(CUgraphExec*, CUgraph)) {
  return {{row},
          {"cuGraphExecDestroy", "cuDeviceGraphMemTrim"},
          [instantiate](Made& m) {
            CUgraph made = nullptr;
            CUgraphNode node = nullptr;
            CUDA_MEM_ALLOC_NODE_PARAMS params{};
            params.pool.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
            params.bytes = 4 * kMiB;
            CUresult result = cuGraphCreate(&made, 0);
            if (result == CUDA_SUCCESS)
              result = cuGraphAddMemAllocNode(&node, made, nullptr, 0, &params);
            if (result == CUDA_SUCCESS) result = instantiate(m.as<CUgraphExec>(), made);
            if (result != CUDA_SUCCESS) return result;
            static_cast<void>(cuGraphLaunch(*m.as<CUgraphExec>(), nullptr));
            return result;
          },
          [](Made& m) {
            if (m.object != nullptr)
              if (const CUresult ended = cuGraphExecDestroy(*m.as<CUgraphExec>());
                  ended != CUDA_SUCCESS)
                return ended;
            m.object = nullptr;
            return cuDeviceGraphMemTrim(0);
          }};
}

Way context(const char* row, const char* end_row, CUresult (*create)(CUcontext*),
            CUresult (*end)(CUcontext)) {
  return {{row},
          {end_row},
          [create](Made& m) { return create(m.as<CUcontext>()); },
          [end](Made& m) { return end(*m.as<CUcontext>()); }};
}
Way primary(const char* end_row, CUresult (*end)(CUdevice)) {
  return {{"cuDevicePrimaryCtxRetain"},
          {end_row},
          [](Made& m) { return cuDevicePrimaryCtxRetain(m.as<CUcontext>(), 0); },
          [end](Made&) { return end(0); }};
}

}  // namespace

std::vector<Way> object_ways() {
  return {
      array("cuArrayCreate_v2", [](CUarray* at) { return cuArrayCreate_v2(at, &kFlat); }),
      array("cuArrayCreate", [](CUarray* at) { return cuArrayCreate(at, &kOldFlat); }),
      array("cuArray3DCreate_v2", [](CUarray* at) { return cuArray3DCreate_v2(at, &kCube); }),
      array("cuArray3DCreate", [](CUarray* at) { return cuArray3DCreate(at, &kOldCube); }),
      {{"cuMipmappedArrayCreate"},
       {"cuMipmappedArrayDestroy"},
       [](Made& m) { return cuMipmappedArrayCreate(m.as<CUmipmappedArray>(), &kCube, 3); },
       [](Made& m) { return cuMipmappedArrayDestroy(*m.as<CUmipmappedArray>()); }},
      {{"cuImportExternalMemory"},
       {"cuDestroyExternalMemory"},
       [](Made& m) { return cuImportExternalMemory(m.as<CUexternalMemory>(), &kForeign); },
       [](Made& m) { return cuDestroyExternalMemory(*m.as<CUexternalMemory>()); }},
      module("cuModuleLoad", [](CUmodule* at) { return cuModuleLoad(at, kFile); }),
      module("cuModuleLoadData", [](CUmodule* at) { return cuModuleLoadData(at, kImage); }),
      module("cuModuleLoadDataEx",
             [](CUmodule* at) { return cuModuleLoadDataEx(at, kImage, 0, nullptr, nullptr); }),
      module("cuModuleLoadFatBinary",
             [](CUmodule* at) { return cuModuleLoadFatBinary(at, kImage); }),
      library("cuLibraryLoadData",
              [](CUlibrary* at) {
                return cuLibraryLoadData(at, kImage, nullptr, nullptr, 0, nullptr, nullptr, 0);
              }),
      library("cuLibraryLoadFromFile",
              [](CUlibrary* at) {
                return cuLibraryLoadFromFile(at, kFile, nullptr, nullptr, 0, nullptr, nullptr, 0);
              }),
  };
}

std::vector<Way> graph_ways() {
  return {
      graph("cuGraphInstantiate",
            [](CUgraphExec* at, CUgraph from) {
              return cuGraphInstantiate(at, from, nullptr, nullptr, 0);
            }),
      graph("cuGraphInstantiate_v2",
            [](CUgraphExec* at, CUgraph from) {
              return cuGraphInstantiate_v2(at, from, nullptr, nullptr, 0);
            }),
      graph("cuGraphInstantiateWithFlags",
            [](CUgraphExec* at, CUgraph from) { return cuGraphInstantiateWithFlags(at, from, 0); }),
      graph("cuGraphInstantiateWithParams",
            [](CUgraphExec* at, CUgraph from) {
              CUDA_GRAPH_INSTANTIATE_PARAMS params{};
              return cuGraphInstantiateWithParams(at, from, &params);
            }),
      graph("cuGraphInstantiateWithParams_ptsz",
            [](CUgraphExec* at, CUgraph from) {
              CUDA_GRAPH_INSTANTIATE_PARAMS params{};
              return cuGraphInstantiateWithParams_ptsz(at, from, &params);
            }),
  };
}

std::vector<Way> context_ways() {
  return {
      context(
          "cuCtxCreate", "cuCtxDestroy", [](CUcontext* at) { return cuCtxCreate(at, 0, 0); },
          cuCtxDestroy),
      context(
          "cuCtxCreate_v2", "cuCtxDestroy_v2",
          [](CUcontext* at) { return cuCtxCreate_v2(at, 0, 0); }, cuCtxDestroy_v2),
      context(
          "cuCtxCreate_v3", "cuCtxDetach",
          [](CUcontext* at) { return cuCtxCreate_v3(at, nullptr, 0, 0, 0); }, cuCtxDetach),
      context(
          "cuCtxCreate_v4", "cuCtxDestroy_v2",
          [](CUcontext* at) { return cuCtxCreate_v4(at, nullptr, 0, 0); }, cuCtxDestroy_v2),
      primary("cuDevicePrimaryCtxRelease", cuDevicePrimaryCtxRelease),
      primary("cuDevicePrimaryCtxRelease_v2", cuDevicePrimaryCtxRelease_v2),
      primary("cuDevicePrimaryCtxReset", cuDevicePrimaryCtxReset),
      primary("cuDevicePrimaryCtxReset_v2", cuDevicePrimaryCtxReset_v2),
      {{"cuGreenCtxCreate"},
       {"cuGreenCtxDestroy"},
       [](Made& m) { return cuGreenCtxCreate(m.as<CUgreenCtx>(), nullptr, 0, 0); },
       [](Made& m) { return cuGreenCtxDestroy(*m.as<CUgreenCtx>()); }},
      {{"cuCtxSetLimit"},
       {"cuCtxSetLimit"},
       [](Made&) { return cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 9 * kMiB); },
       [](Made&) { return cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, kMiB); }},
  };
}

}  // namespace aliquot::interposer::testing
