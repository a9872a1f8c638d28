// Kinds of memory beyond cuMemAlloc: pools, handles and mappings, arrays, graphs.
#include <fcntl.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "simdriver/cuda/builtin_kernels.h"
#include "simdriver/cuda/test_driver.h"

namespace aliquot::simdriver::test {
namespace {

constexpr std::uint64_t kMiB = 1u << 20;

[[maybe_unused]] const auto* const kMachine = machine_for_tests("a100x8");

class DriverMemory : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(CU(cuInit)(0), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuDevicePrimaryCtxRetain)(&context_, 0), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuCtxSetCurrent)(context_), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuStreamCreate)(&stream_, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    free_before_ = free_now();
  }
  void TearDown() override {
    EXPECT_EQ(free_now(), free_before_);
    EXPECT_EQ(CU(cuStreamDestroy_v2)(stream_), CUDA_SUCCESS);
    CU(cuCtxSetCurrent)(nullptr);
    EXPECT_EQ(CU(cuDevicePrimaryCtxRelease_v2)(0), CUDA_SUCCESS);
  }
  static std::uint64_t free_now() {
    size_t free = 0;
    EXPECT_EQ(CU(cuMemGetInfo_v2)(&free, nullptr), CUDA_SUCCESS);
    return free;
  }
  static std::uint64_t attribute(CUmemoryPool pool, CUmemPool_attribute which) {
    std::uint64_t value = 0;
    EXPECT_EQ(CU(cuMemPoolGetAttribute)(pool, which, &value), CUDA_SUCCESS);
    return value;
  }
  static CUmemAllocationProp on_device(int handle_types = 0) {
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    properties.requested_handle_types = handle_types;
    return properties;
  }
  CUcontext context_ = nullptr;
  CUstream stream_ = nullptr;
  std::uint64_t free_before_ = 0;
};

TEST_F(DriverMemory, PoolsKeepWhatIsFreedUpToTheirThreshold) {
  CUmemoryPool pool = nullptr;
  ASSERT_EQ(CU(cuDeviceGetDefaultMemPool)(&pool, 0), CUDA_SUCCESS);
  CUdeviceptr address = 0;
  ASSERT_EQ(CU(cuMemAllocAsync)(&address, 10 * kMiB, stream_), CUDA_SUCCESS);
  EXPECT_EQ(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 10 * kMiB);
  EXPECT_EQ(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 32 * kMiB);
  EXPECT_EQ(free_before_ - free_now(), 32 * kMiB);
  std::uint64_t threshold = 64 * kMiB;
  ASSERT_EQ(CU(cuMemPoolSetAttribute)(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold),
            CUDA_SUCCESS);
  ASSERT_EQ(CU(cuMemFreeAsync)(address, stream_), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuStreamSynchronize)(stream_), CUDA_SUCCESS);
  EXPECT_EQ(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0u);
  EXPECT_EQ(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 32 * kMiB);
  EXPECT_EQ(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 10 * kMiB);
  ASSERT_EQ(CU(cuMemPoolTrimTo)(pool, 0), CUDA_SUCCESS);
  threshold = 0;
  EXPECT_EQ(CU(cuMemPoolSetAttribute)(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold),
            CUDA_SUCCESS);
}

TEST_F(DriverMemory, AHandleLivesUntilItsLastMappingIsGone) {
  const CUmemAllocationProp properties = on_device();
  size_t granularity = 0;
  ASSERT_EQ(CU(cuMemGetAllocationGranularity)(&granularity, &properties,
                                              CU_MEM_ALLOC_GRANULARITY_MINIMUM),
            CUDA_SUCCESS);
  EXPECT_EQ(granularity, 2 * kMiB);
  CUmemGenericAllocationHandle handle = 0;
  EXPECT_EQ(CU(cuMemCreate)(&handle, kMiB, &properties, 0), CUDA_ERROR_INVALID_VALUE);
  ASSERT_EQ(CU(cuMemCreate)(&handle, 4 * kMiB, &properties, 0), CUDA_SUCCESS);
  CUdeviceptr range = 0;
  ASSERT_EQ(CU(cuMemAddressReserve)(&range, 16 * kMiB, 0, 0, 0), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuMemMap)(range, 4 * kMiB, 0, handle, 0), CUDA_SUCCESS);
  int word = 5;
  EXPECT_EQ(CU(cuMemcpyHtoD_v2)(range, &word, 4), CUDA_ERROR_INVALID_VALUE);  // no access yet
  const CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, 0},
                               CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  ASSERT_EQ(CU(cuMemSetAccess)(range, 4 * kMiB, &access, 1), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuMemcpyHtoD_v2)(range + 12, &word, 4), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuMemRelease)(handle), CUDA_SUCCESS);
  EXPECT_EQ(free_before_ - free_now(), 4 * kMiB);
  // The same memory at a second place.
  CUmemGenericAllocationHandle again = 0;
  ASSERT_EQ(CU(cuMemRetainAllocationHandle)(&again, reinterpret_cast<void*>(range)), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuMemMap)(range + 8 * kMiB, 4 * kMiB, 0, again, 0), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuMemSetAccess)(range + 8 * kMiB, 4 * kMiB, &access, 1), CUDA_SUCCESS);
  int got = 0;
  EXPECT_EQ(CU(cuMemcpyDtoH_v2)(&got, range + 8 * kMiB + 12, 4), CUDA_SUCCESS);
  EXPECT_EQ(got, 5);
  EXPECT_EQ(CU(cuMemAddressFree)(range, 16 * kMiB), CUDA_ERROR_INVALID_VALUE);  // still mapped
  EXPECT_EQ(CU(cuMemUnmap)(range, 4 * kMiB), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuMemRelease)(again), CUDA_SUCCESS);
  EXPECT_EQ(free_before_ - free_now(), 4 * kMiB);
  EXPECT_EQ(CU(cuMemUnmap)(range + 8 * kMiB, 4 * kMiB), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuMemAddressFree)(range, 16 * kMiB), CUDA_SUCCESS);
}

TEST_F(DriverMemory, ExportsAHandleAsADescriptor) {
  const CUmemAllocationProp properties = on_device(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  CUmemGenericAllocationHandle handle = 0;
  ASSERT_EQ(CU(cuMemCreate)(&handle, 2 * kMiB, &properties, 0), CUDA_SUCCESS);
  int fd = -1;
  ASSERT_EQ(
      CU(cuMemExportToShareableHandle)(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
      CUDA_SUCCESS);
  CUmemGenericAllocationHandle imported = 0;
  ASSERT_EQ(CU(cuMemImportFromShareableHandle)(
                &imported, reinterpret_cast<void*>(static_cast<std::intptr_t>(fd)),
                CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
            CUDA_SUCCESS);
  EXPECT_EQ(free_before_ - free_now(), 2 * kMiB);  // charged once
  EXPECT_EQ(CU(cuMemRelease)(handle), CUDA_SUCCESS);
  EXPECT_EQ(free_before_ - free_now(), 2 * kMiB);
  EXPECT_EQ(CU(cuMemRelease)(imported), CUDA_SUCCESS);
  close(fd);
}

TEST_F(DriverMemory, CopiesBoxesInAndOutOfArrays) {
  CUDA_ARRAY3D_DESCRIPTOR shape{16, 8, 4, CU_AD_FORMAT_FLOAT, 2, 0};
  CUarray array = nullptr;
  ASSERT_EQ(CU(cuArray3DCreate_v2)(&array, &shape), CUDA_SUCCESS);
  EXPECT_EQ(free_before_ - free_now(), 2 * kMiB);
  std::vector<unsigned char> in(16 * 8 * 8 * 4);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<unsigned char>(i * 31 + i / 97);
  CUDA_MEMCPY3D copy{};
  copy.from_type = CU_MEMORYTYPE_HOST;
  copy.from_host = in.data();
  copy.from_pitch = 128;
  copy.from_height = 8;
  copy.to_type = CU_MEMORYTYPE_ARRAY;
  copy.to_array = array;
  copy.width_bytes = 128;
  copy.height = 8;
  copy.depth = 4;
  ASSERT_EQ(CU(cuMemcpy3D_v2)(&copy), CUDA_SUCCESS);
  std::vector<unsigned char> out(3 * 2 * 2);
  CUDA_MEMCPY3D back{};
  back.from_type = CU_MEMORYTYPE_ARRAY;
  back.from_array = array;
  back.from_x_bytes = 5;
  back.from_y = 6;
  back.from_z = 1;
  back.to_type = CU_MEMORYTYPE_HOST;
  back.to_host = out.data();
  back.to_pitch = 3;
  back.to_height = 2;
  back.width_bytes = 3;
  back.height = 2;
  back.depth = 2;
  ASSERT_EQ(CU(cuMemcpy3D_v2)(&back), CUDA_SUCCESS);
  std::size_t at = 0;
  for (std::size_t z = 1; z < 3; ++z)
    for (std::size_t y = 6; y < 8; ++y)
      for (std::size_t x = 5; x < 8; ++x) EXPECT_EQ(out[at++], in[(z * 8 + y) * 128 + x]);
  back.from_y = 7;
  EXPECT_EQ(CU(cuMemcpy3D_v2)(&back), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CU(cuArrayDestroy)(array), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuArrayDestroy)(array), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(DriverMemory, RunsACapturedGraphAsOftenAsItIsLaunched) {
  CUmodule module = nullptr;
  CUfunction add = nullptr;
  ASSERT_EQ(CU(cuModuleLoadData)(&module, kBuiltinPtx), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuModuleGetFunction)(&add, module, "aliquot_add"), CUDA_SUCCESS);
  CUdeviceptr memory = 0;
  ASSERT_EQ(CU(cuMemAlloc_v2)(&memory, 64), CUDA_SUCCESS);
  CUdeviceptr one = memory + 32;
  ASSERT_EQ(CU(cuMemsetD32_v2)(memory, 0, 8), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuMemsetD32_v2)(one, 1, 8), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuStreamBeginCapture_v2)(stream_, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
  std::uint64_t words = 8;
  void* arguments[] = {&memory, &memory, &one, &words};
  ASSERT_EQ(CU(cuLaunchKernel)(add, 1, 1, 1, 1, 1, 1, 0, stream_, arguments, nullptr),
            CUDA_SUCCESS);
  ASSERT_EQ(CU(cuLaunchKernel)(add, 1, 1, 1, 1, 1, 1, 0, stream_, arguments, nullptr),
            CUDA_SUCCESS);
  CUstreamCaptureStatus status = 0;
  EXPECT_EQ(CU(cuStreamIsCapturing)(stream_, &status), CUDA_SUCCESS);
  EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
  CUgraph graph = nullptr;
  ASSERT_EQ(CU(cuStreamEndCapture)(stream_, &graph), CUDA_SUCCESS);
  size_t nodes = 0;
  EXPECT_EQ(CU(cuGraphGetNodes)(graph, nullptr, &nodes), CUDA_SUCCESS);
  EXPECT_EQ(nodes, 2u);
  std::uint32_t got = 9;
  EXPECT_EQ(CU(cuMemcpyDtoH_v2)(&got, memory, 4), CUDA_SUCCESS);
  EXPECT_EQ(got, 0u);  // captured, not run
  CUgraphExec executable = nullptr;
  ASSERT_EQ(CU(cuGraphInstantiateWithFlags)(&executable, graph, 0), CUDA_SUCCESS);
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(CU(cuGraphLaunch)(executable, stream_), CUDA_SUCCESS);
  }
  ASSERT_EQ(CU(cuStreamSynchronize)(stream_), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuMemcpyDtoH_v2)(&got, memory + 28, 4), CUDA_SUCCESS);
  EXPECT_EQ(got, 6u);
  EXPECT_EQ(CU(cuGraphExecDestroy)(executable), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuGraphDestroy)(graph), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuMemFree_v2)(memory), CUDA_SUCCESS);
}

TEST_F(DriverMemory, ASynchronisationInACaptureIsRefusedAndEndsIt) {
  ASSERT_EQ(CU(cuStreamBeginCapture_v2)(stream_, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuStreamSynchronize)(stream_), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CUgraph graph = nullptr;
  EXPECT_EQ(CU(cuStreamEndCapture)(stream_, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  EXPECT_EQ(graph, nullptr);
  EXPECT_EQ(CU(cuStreamSynchronize)(stream_), CUDA_SUCCESS);
}

// A branch of stream_'s capture: a second stream that waited for it and filled some memory.
class CaptureWithABranch : public DriverMemory {
 protected:
  void SetUp() override {
    DriverMemory::SetUp();
    ASSERT_EQ(CU(cuMemAlloc_v2)(&memory_, 4), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuStreamCreate)(&branch_, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuEventCreate)(&event_, 0), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuStreamBeginCapture_v2)(stream_, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuEventRecord)(event_, stream_), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuStreamWaitEvent)(branch_, event_, 0), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuMemsetD32Async)(memory_, 7, 1, branch_), CUDA_SUCCESS);
  }
  void TearDown() override {
    EXPECT_EQ(CU(cuEventDestroy_v2)(event_), CUDA_SUCCESS);
    EXPECT_EQ(CU(cuMemFree_v2)(memory_), CUDA_SUCCESS);
    DriverMemory::TearDown();
  }
  CUdeviceptr memory_ = 0;
  CUstream branch_ = nullptr;
  CUevent event_ = nullptr;
};

TEST_F(CaptureWithABranch, MayLoseTheJoinedBranchBeforeItEnds) {
  ASSERT_EQ(CU(cuEventRecord)(event_, branch_), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuStreamWaitEvent)(stream_, event_, 0), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuStreamDestroy_v2)(branch_), CUDA_SUCCESS);
  CUgraph graph = nullptr;
  ASSERT_EQ(CU(cuStreamEndCapture)(stream_, &graph), CUDA_SUCCESS);
  size_t nodes = 0;
  EXPECT_EQ(CU(cuGraphGetNodes)(graph, nullptr, &nodes), CUDA_SUCCESS);
  EXPECT_EQ(nodes, 1u);
  EXPECT_EQ(CU(cuGraphDestroy)(graph), CUDA_SUCCESS);
}

TEST_F(CaptureWithABranch, IsRefusedWhenTheBranchIsLostUnjoined) {
  ASSERT_EQ(CU(cuStreamDestroy_v2)(branch_), CUDA_SUCCESS);
  CUgraph graph = nullptr;
  EXPECT_EQ(CU(cuStreamEndCapture)(stream_, &graph), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  EXPECT_EQ(graph, nullptr);
}

TEST_F(DriverMemory, GraphsHoldTheirMemoryFromLaunchToFree) {
  CUgraph graph = nullptr;
  ASSERT_EQ(CU(cuGraphCreate)(&graph, 0), CUDA_SUCCESS);
  CUDA_MEM_ALLOC_NODE_PARAMS params{};
  params.pool.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  params.pool.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  params.bytes = 3 * kMiB;
  CUgraphNode alloc = nullptr;
  ASSERT_EQ(CU(cuGraphAddMemAllocNode)(&alloc, graph, nullptr, 0, &params), CUDA_SUCCESS);
  EXPECT_NE(params.address, 0u);
  CUDA_MEMSET_NODE_PARAMS set{params.address, 0, 3, 1, 100, 1};
  CUgraphNode fill = nullptr;
  ASSERT_EQ(CU(cuGraphAddMemsetNode)(&fill, graph, &alloc, 1, &set, context_), CUDA_SUCCESS);
  CUgraphExec executable = nullptr;
  ASSERT_EQ(CU(cuGraphInstantiateWithFlags)(&executable, graph, 0), CUDA_SUCCESS);
  EXPECT_EQ(free_now(), free_before_);
  ASSERT_EQ(CU(cuGraphLaunch)(executable, stream_), CUDA_SUCCESS);
  EXPECT_EQ(free_before_ - free_now(), 4 * kMiB);
  ASSERT_EQ(CU(cuStreamSynchronize)(stream_), CUDA_SUCCESS);
  unsigned char got = 0;
  EXPECT_EQ(CU(cuMemcpyDtoH_v2)(&got, params.address + 99, 1), CUDA_SUCCESS);
  EXPECT_EQ(got, 3);
  EXPECT_EQ(CU(cuGraphLaunch)(executable, stream_), CUDA_ERROR_INVALID_VALUE);  // not freed yet
  EXPECT_EQ(CU(cuMemFreeAsync)(params.address, stream_), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuStreamSynchronize)(stream_), CUDA_SUCCESS);
  EXPECT_EQ(free_now(), free_before_);
  EXPECT_EQ(CU(cuGraphExecDestroy)(executable), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuGraphDestroy)(graph), CUDA_SUCCESS);
}

TEST_F(DriverMemory, AGraphThatFreesItsMemoryIsLaunchedAgainBeforeItHas) {
  CUgraph graph = nullptr;
  ASSERT_EQ(CU(cuGraphCreate)(&graph, 0), CUDA_SUCCESS);
  CUDA_MEM_ALLOC_NODE_PARAMS params{};
  params.pool.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  params.pool.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  params.bytes = kMiB;
  CUgraphNode nodes[3] = {};
  ASSERT_EQ(CU(cuGraphAddMemAllocNode)(&nodes[0], graph, nullptr, 0, &params), CUDA_SUCCESS);
  const CUDA_HOST_NODE_PARAMS wait{[](void*) { usleep(5000); }, nullptr};
  ASSERT_EQ(CU(cuGraphAddHostNode)(&nodes[1], graph, &nodes[0], 1, &wait), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuGraphAddMemFreeNode)(&nodes[2], graph, &nodes[1], 1, params.address),
            CUDA_SUCCESS);
  CUgraphExec executable = nullptr;
  ASSERT_EQ(CU(cuGraphInstantiateWithFlags)(&executable, graph, 0), CUDA_SUCCESS);
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(CU(cuGraphLaunch)(executable, stream_), CUDA_SUCCESS);
  }
  EXPECT_EQ(free_before_ - free_now(), 2 * kMiB);  // held once, however many launches wait
  ASSERT_EQ(CU(cuStreamSynchronize)(stream_), CUDA_SUCCESS);
  EXPECT_EQ(free_now(), free_before_);
  EXPECT_EQ(CU(cuGraphExecDestroy)(executable), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuGraphDestroy)(graph), CUDA_SUCCESS);
}

TEST_F(DriverMemory, LinksPtxAndLogsItsErrors) {
  char log[256] = {};
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(sizeof(log))};
  CUlinkState link = nullptr;
  ASSERT_EQ(CU(cuLinkCreate_v2)(2, options, values, &link), CUDA_SUCCESS);
  char wrong[] = ".version 7.0\n.target sm_50\n.entry x( { ret; }";
  EXPECT_EQ(CU(cuLinkAddData_v2)(link, CU_JIT_INPUT_PTX, wrong, sizeof(wrong), "wrong", 0, nullptr,
                                 nullptr),
            CUDA_ERROR_INVALID_PTX);
  EXPECT_NE(std::strstr(log, "line 3"), nullptr) << log;
  std::string ptx = kBuiltinPtx;
  ASSERT_EQ(CU(cuLinkAddData_v2)(link, CU_JIT_INPUT_PTX, ptx.data(), ptx.size() + 1, "ours", 0,
                                 nullptr, nullptr),
            CUDA_SUCCESS);
  void* image = nullptr;
  size_t size = 0;
  ASSERT_EQ(CU(cuLinkComplete)(link, &image, &size), CUDA_SUCCESS);
  CUmodule module = nullptr;
  EXPECT_EQ(CU(cuModuleLoadData)(&module, image), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuLinkDestroy)(link), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuModuleUnload)(module), CUDA_SUCCESS);
}

TEST_F(DriverMemory, MapsExternalMemoryOfAnExportedHandle) {
  const CUmemAllocationProp properties = on_device(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  CUmemGenericAllocationHandle handle = 0;
  ASSERT_EQ(CU(cuMemCreate)(&handle, 2 * kMiB, &properties, 0), CUDA_SUCCESS);
  CUDA_EXTERNAL_MEMORY_HANDLE_DESC description{};
  description.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD;
  ASSERT_EQ(CU(cuMemExportToShareableHandle)(&description.fd, handle,
                                             CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
            CUDA_SUCCESS);
  CUexternalMemory external = nullptr;
  ASSERT_EQ(CU(cuImportExternalMemory)(&external, &description), CUDA_SUCCESS);
  EXPECT_EQ(fcntl(description.fd, F_GETFD), -1) << "an imported descriptor is the driver's";
  CUDA_EXTERNAL_MEMORY_BUFFER_DESC buffer{};
  buffer.offset = 4096;
  buffer.bytes = 2 * kMiB;
  CUdeviceptr address = 0;
  EXPECT_EQ(CU(cuExternalMemoryGetMappedBuffer)(&address, external, &buffer),
            CUDA_ERROR_INVALID_VALUE);
  buffer.bytes = kMiB;
  ASSERT_EQ(CU(cuExternalMemoryGetMappedBuffer)(&address, external, &buffer), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuMemRelease)(handle), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuDestroyExternalMemory)(external), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuMemsetD8_v2)(address, 4, kMiB), CUDA_SUCCESS);
  unsigned char got = 0;
  EXPECT_EQ(CU(cuMemcpyDtoH_v2)(&got, address + kMiB - 1, 1), CUDA_SUCCESS);
  EXPECT_EQ(got, 4);
  EXPECT_EQ(free_before_ - free_now(), 2 * kMiB);
  EXPECT_EQ(CU(cuMemFree_v2)(address), CUDA_SUCCESS);
}

TEST_F(DriverMemory, PutsHandlesBehindArraysMadeWithoutMemory) {
  CUDA_ARRAY3D_DESCRIPTOR shape{256, 256, 0, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_DEFERRED_MAPPING};
  CUarray array = nullptr;
  ASSERT_EQ(CU(cuArray3DCreate_v2)(&array, &shape), CUDA_SUCCESS);
  EXPECT_EQ(free_now(), free_before_);
  CUDA_ARRAY_MEMORY_REQUIREMENTS needs{};
  ASSERT_EQ(CU(cuArrayGetMemoryRequirements)(&needs, array, 0), CUDA_SUCCESS);
  EXPECT_EQ(needs.bytes, 256u * 256u * 4u);
  const CUmemAllocationProp properties = on_device();
  CUmemGenericAllocationHandle handle = 0;
  ASSERT_EQ(CU(cuMemCreate)(&handle, 2 * kMiB, &properties, 0), CUDA_SUCCESS);
  CUarrayMapInfo info{};
  info.resource_type = CU_RESOURCE_TYPE_ARRAY;
  info.array = array;
  info.operation = CU_MEM_OPERATION_TYPE_MAP;
  info.handle = handle;
  ASSERT_EQ(CU(cuMemMapArrayAsync)(&info, 1, stream_), CUDA_SUCCESS);
  const float value = 2.5f;
  float got = 0;
  EXPECT_EQ(CU(cuMemcpyHtoA_v2)(array, 16, &value, 4), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuMemcpyAtoH_v2)(&got, array, 16, 4), CUDA_SUCCESS);
  EXPECT_EQ(got, value);
  EXPECT_EQ(CU(cuMemRelease)(handle), CUDA_SUCCESS);
  EXPECT_EQ(free_before_ - free_now(), 2 * kMiB);
  info.operation = CU_MEM_OPERATION_TYPE_UNMAP;
  EXPECT_EQ(CU(cuMemMapArrayAsync)(&info, 1, stream_), CUDA_SUCCESS);
  EXPECT_EQ(free_now(), free_before_);
  EXPECT_EQ(CU(cuArrayDestroy)(array), CUDA_SUCCESS);
}

TEST_F(DriverMemory, SplitsTheMultiprocessorsForGreenContexts) {
  CUdevResource all{};
  ASSERT_EQ(CU(cuDeviceGetDevResource)(0, &all, CU_DEV_RESOURCE_TYPE_SM), CUDA_SUCCESS);
  EXPECT_EQ(all.sm.sm_count, 108u);
  CUdevResource part{};
  CUdevResource rest{};
  unsigned groups = 1;
  ASSERT_EQ(CU(cuDevSmResourceSplitByCount)(&part, &groups, &all, &rest, 0, 25), CUDA_SUCCESS);
  EXPECT_EQ(part.sm.sm_count, 26u);
  EXPECT_EQ(rest.sm.sm_count, 82u);
  CUdevResourceDesc description = nullptr;
  CUgreenCtx green = nullptr;
  CUstream stream = nullptr;
  ASSERT_EQ(CU(cuDevResourceGenerateDesc)(&description, &part, 1), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuGreenCtxCreate)(&green, description, 0, 1), CUDA_SUCCESS);
  CUdevResource has{};
  EXPECT_EQ(CU(cuGreenCtxGetDevResource)(green, &has, CU_DEV_RESOURCE_TYPE_SM), CUDA_SUCCESS);
  EXPECT_EQ(has.sm.sm_count, 26u);
  ASSERT_EQ(CU(cuGreenCtxStreamCreate)(&stream, green, CU_STREAM_NON_BLOCKING, 0), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuStreamSynchronize)(stream), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuStreamDestroy_v2)(stream), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuGreenCtxDestroy)(green), CUDA_SUCCESS);
}

TEST_F(DriverMemory, TheHostsOwnMemoryIsReachedWhileItIsRegistered) {
  std::vector<std::uint32_t> words(2048, 0);
  const std::size_t bytes = words.size() * 4;
  CUdeviceptr address = 0;
  EXPECT_EQ(CU(cuMemHostGetDevicePointer_v2)(&address, words.data(), 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CU(cuMemHostRegister_v2)(words.data(), 0, 0), CUDA_ERROR_INVALID_VALUE);
  ASSERT_EQ(CU(cuMemHostRegister_v2)(words.data(), bytes, CU_MEMHOSTREGISTER_DEVICEMAP),
            CUDA_SUCCESS);
  EXPECT_EQ(CU(cuMemHostRegister_v2)(words.data() + 1024, bytes, 0),
            CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  ASSERT_EQ(CU(cuMemHostGetDevicePointer_v2)(&address, words.data(), 0), CUDA_SUCCESS);
  unsigned type = 0;
  EXPECT_EQ(CU(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address),
            CUDA_SUCCESS);
  EXPECT_EQ(type, static_cast<unsigned>(CU_MEMORYTYPE_HOST));
  ASSERT_EQ(CU(cuMemsetD32Async)(address, 5, words.size(), stream_), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuStreamSynchronize)(stream_), CUDA_SUCCESS);
  EXPECT_EQ(words, std::vector<std::uint32_t>(words.size(), 5));
  EXPECT_EQ(CU(cuMemFreeHost)(words.data()), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(CU(cuMemHostUnregister)(words.data() + 1), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
  EXPECT_EQ(CU(cuMemHostUnregister)(words.data()), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuMemHostUnregister)(words.data()), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
  EXPECT_EQ(CU(cuMemHostGetDevicePointer_v2)(&address, words.data(), 0), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(DriverMemory, WaitsForAnotherGpusStream) {
  CUcontext other = nullptr;
  ASSERT_EQ(CU(cuDevicePrimaryCtxRetain)(&other, 1), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuCtxSetCurrent)(other), CUDA_SUCCESS);
  CUmodule module = nullptr;
  CUfunction spin = nullptr;
  CUevent event = nullptr;
  ASSERT_EQ(CU(cuModuleLoadData)(&module, kBuiltinPtx), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuModuleGetFunction)(&spin, module, "aliquot_spin"), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuEventCreate)(&event, 0), CUDA_SUCCESS);
  std::uint64_t ns = 30'000'000;
  void* arguments[] = {&ns};
  ASSERT_EQ(CU(cuLaunchKernel)(spin, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr),
            CUDA_SUCCESS);
  ASSERT_EQ(CU(cuEventRecord)(event, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuCtxSetCurrent)(context_), CUDA_SUCCESS);
  ASSERT_EQ(CU(cuStreamWaitEvent)(stream_, event, 0), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuStreamQuery)(stream_), CUDA_ERROR_NOT_READY);
  EXPECT_EQ(CU(cuStreamSynchronize)(stream_), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuEventQuery)(event), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuEventDestroy_v2)(event), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuDevicePrimaryCtxRelease_v2)(1), CUDA_SUCCESS);
}

}  // namespace
}  // namespace aliquot::simdriver::test
