// Which symbols may be passed on without a look: none that moves device memory, makes work,
// tells of the machine, or hands out other functions. The lists are of names, not of rows, so
// that a row cannot excuse itself.
#include <gtest/gtest.h>

#include <regex>
#include <span>
#include <vector>

#include "driver_abi/cuda_table.h"
#include "driver_abi/nvml_table.h"

namespace aliquot::driver_abi {
namespace {

void expect_nothing_passed(std::span<const Entry> entries, const std::vector<const char*>& names) {
  for (const char* name : names) {
    const std::regex pattern(name);
    bool any = false;
    for (const Entry& row : entries) {
      if (!std::regex_match(row.symbol.begin(), row.symbol.end(), pattern)) continue;
      any = true;
      EXPECT_NE(row.kind, Kind::kPass) << row.symbol;
    }
    EXPECT_TRUE(any) << "no row matches " << name;
  }
}

TEST(Kinds, NothingThatCostsDeviceMemoryIsPassed) {
  expect_nothing_passed(kCudaEntries, {"cuMemAlloc(_v2)?",
                                       "cuMemAllocPitch(_v2)?",
                                       "cuMemFree(_v2)?",
                                       "cuMemAllocManaged",
                                       "cuMemGetAddressRange(_v2)?",
                                       "cuMemAllocAsync.*",
                                       "cuMemAllocFromPoolAsync.*",
                                       "cuMemFreeAsync.*",
                                       "cuMemPool.*",
                                       "cuDevice(Get|Set)(Default)?MemPool",
                                       "cuMem(GetDefault|Get|Set)MemPool",
                                       "cuMemCreate",
                                       "cuMemRelease",
                                       "cuMemMap",
                                       "cuMemUnmap",
                                       "cuMemRetainAllocationHandle",
                                       "cuMem(Import|Export).*ShareableHandle",
                                       "cuMemAddress(Reserve|Free)",
                                       "cuMemSetAccess",
                                       "cuMemMapArrayAsync.*",
                                       "cuMemGetAllocationGranularity",
                                       "cuArray(3D)?Create(_v2)?",
                                       "cuMipmappedArray(Create|Destroy)",
                                       "cuArrayDestroy",
                                       "cuArrayGetMemoryRequirements",
                                       "cuIpc(Get|Open|Close)MemHandle.*",
                                       "cuImportExternalMemory",
                                       "cuExternalMemoryGetMapped.*",
                                       "cuDestroyExternalMemory",
                                       "cuGraphics.*Register[A-Z].*",
                                       "cuGraphicsMapResources.*",
                                       "cuMulticast(Create|AddDevice|BindMem|BindAddr|Unbind).*",
                                       "cuGraphAddMem(Alloc|Free)Node",
                                       "cuGraphAddNode.*",
                                       "cuDeviceGraphMemTrim",
                                       "cuDevice[GS]etGraphMemAttribute"});
}

TEST(Kinds, NothingWithHiddenDeviceBytesIsPassed) {
  expect_nothing_passed(
      kCudaEntries, {"cuDevicePrimaryCtx(Retain|Release|Reset|SetFlags)(_v2)?", "cuCtxCreate(_v.)?",
                     "cuCtxDestroy(_v2)?", "cuGreenCtx(Create|Destroy|StreamCreate)",
                     "cuCtxFromGreenCtx", "cuModuleLoad(Data|DataEx|FatBinary)?", "cuModuleUnload",
                     "cuLibrary(LoadData|LoadFromFile|Unload)", "cuKernelGetFunction", "cuLink.*",
                     "cuCtxSetLimit", "cuStreamCreate.*", "cuMemHostAlloc", "cuMemAllocHost(_v2)?",
                     "cuMemHostRegister(_v2)?", "cuCheckpointProcess.*"});
}

TEST(Kinds, NoWorkIsPassed) {
  expect_nothing_passed(
      kCudaEntries,
      {"cuLaunch.*", "cuStreamAddCallback.*", "cuGraphLaunch.*", "cuGraphUpload.*",
       "cuGraphInstantiate.*", "cuStreamBatchMemOp.*", "cuStream(Write|Wait)Value.*", "cuMemcpy.*",
       "cuMemset.*", "cuMemPrefetch.*", "cuMemDiscard.*", "cuMemBatchDecompressAsync.*",
       "cu(Signal|Wait)ExternalSemaphoresAsync.*", "cuFabricCpyBatchAsync.*",
       "cuStream(Begin|End)Capture.*", "cuStreamBeginRecapture.*", "cuStreamIsCapturing.*",
       "cuStreamGetCaptureInfo.*", "cuThreadExchangeStreamCaptureMode"});
}

TEST(Kinds, NothingThatTellsOfTheMachineIsPassed) {
  expect_nothing_passed(kCudaEntries, {"cuInit",
                                       "cuMemGetInfo(_v2)?",
                                       "cuDeviceTotalMem(_v2)?",
                                       "cuDeviceGetCount",
                                       "cuDeviceGet",
                                       "cuDeviceGetAttribute",
                                       "cuDeviceGetProperties",
                                       "cuDeviceGetName",
                                       "cuDeviceGetUuid(_v2)?",
                                       "cuDeviceGetLuid",
                                       "cuDeviceGetPCIBusId",
                                       "cuDeviceGetByPCIBusId",
                                       "cuDeviceGetP2PAttribute",
                                       "cuDeviceCanAccessPeer",
                                       "cuCtxGetDevice(_v2)?",
                                       "cuPointerGetAttributes?",
                                       "cuCtxGetExecAffinity",
                                       "cuDeviceGetDevResource",
                                       "cuMemPoolGetAttribute",
                                       "cuOccupancy.*",
                                       "cuCtxGetStreamPriorityRange"});
}

TEST(Kinds, NothingThatHandsOutFunctionsIsPassed) {
  expect_nothing_passed(kCudaEntries, {"cuGetProcAddress(_v2)?", "cuGetExportTable"});
  expect_nothing_passed(kNvmlEntries, {"nvmlInternalGetExportTable"});
}

TEST(Kinds, NvmlShowsNothingOfTheMachineUnguarded) {
  expect_nothing_passed(
      kNvmlEntries,
      {"nvmlInit.*",
       "nvmlDeviceGetCount.*",
       "nvmlDeviceGetHandleBy.*",
       "nvmlDeviceGetIndex",
       "nvmlDeviceGetMinorNumber",
       "nvmlDeviceGetUUID",
       "nvmlDeviceGetName",
       "nvmlDeviceGetPciInfo.*",
       "nvmlDeviceGetMemoryInfo.*",
       "nvmlDeviceGetBAR1MemoryInfo",
       "nvmlDeviceGetUtilizationRates",
       "nvmlDeviceGetProcess(es)?Utilization.*",
       "nvmlDeviceGetSamples",
       "nvmlDeviceGetFieldValues",
       "nvmlDeviceGet(Compute|Graphics|MPSCompute)RunningProcesses.*",
       "nvmlDeviceGetRunningProcessDetailList",
       "nvmlDeviceGetAccounting.*",
       "nvmlDeviceGet(En|De)coderUtilization",
       "nvmlDeviceGetComputeMode",
       "nvmlDeviceGetPersistenceMode",
       "nvmlDeviceGetMigMode",
       "nvmlDeviceGetMaxMigDeviceCount",
       "nvmlDeviceGetMigDeviceHandleByIndex",
       "nvmlDeviceGetDeviceHandleFromMigDeviceHandle",
       "nvmlDeviceGet(Gpu|Compute)InstanceId",
       "nvmlDeviceGetAttributes.*",
       "nvmlDeviceIsMigDeviceHandle",
       "nvmlGpuInstance(Create|Destroy|GetComputeInstance).*",
       "nvmlComputeInstance.*",
       "nvmlGpm.*",
       "nvmlSystemGet(DriverVersion|CudaDriverVersion.*|ProcessName|TopologyGpuSet)"});
}

TEST(Kinds, NoTenantChangesTheGpuForOthers) {
  expect_nothing_passed(
      kNvmlEntries, {"nvmlDevice(Reset|Remove|Modify).*", "nvmlDeviceSet(?!CpuAffinity).*",
                     "nvmlDeviceClear(?!CpuAffinity).*", "nvmlSystemSet.*", "nvmlUnitSetLedState"});
}

}  // namespace
}  // namespace aliquot::driver_abi
