// The driver as the runtime calls it, and the context that a thread's calls go to.
//
// The driver is libcuda.so.1 as the loader finds it: NVIDIA's or a simulated one. Only documented
// names are looked up; a driver before CUDA 12.0 has not all of them and is refused. Results are
// the driver's own numbers, which are those of cudaError_t. Any thread.
#pragma once

#include "driver_abi/cuda_functions.h"

namespace aliquot::runtime {

#define ALIQUOT_RUNTIME_CALLS(CALL) \
  CALL(cuInit)                      \
  CALL(cuDriverGetVersion)          \
  CALL(cuDeviceGetCount)            \
  CALL(cuDevicePrimaryCtxRetain)    \
  CALL(cuCtxGetCurrent)             \
  CALL(cuCtxSetCurrent)             \
  CALL(cuCtxSynchronize)            \
  CALL(cuGetErrorName)              \
  CALL(cuGetErrorString)            \
  CALL(cuMemGetInfo_v2)             \
  CALL(cuMemAlloc_v2)               \
  CALL(cuMemAllocManaged)           \
  CALL(cuMemAllocAsync)             \
  CALL(cuMemFree_v2)                \
  CALL(cuMemFreeAsync)              \
  CALL(cuMemHostAlloc)              \
  CALL(cuMemFreeHost)               \
  CALL(cuMemcpy)                    \
  CALL(cuMemcpyAsync)               \
  CALL(cuMemsetD8_v2)               \
  CALL(cuMemsetD8Async)             \
  CALL(cuStreamCreate)              \
  CALL(cuStreamDestroy_v2)          \
  CALL(cuStreamSynchronize)         \
  CALL(cuStreamQuery)               \
  CALL(cuStreamWaitEvent)           \
  CALL(cuStreamAttachMemAsync)      \
  CALL(cuStreamBeginCapture_v2)     \
  CALL(cuStreamEndCapture)          \
  CALL(cuEventCreate)               \
  CALL(cuEventRecord)               \
  CALL(cuEventSynchronize)          \
  CALL(cuEventQuery)                \
  CALL(cuEventElapsedTime)          \
  CALL(cuEventDestroy_v2)           \
  CALL(cuGraphInstantiateWithFlags) \
  CALL(cuGraphLaunch)               \
  CALL(cuGraphExecDestroy)          \
  CALL(cuGraphDestroy)              \
  CALL(cuLibraryLoadData)           \
  CALL(cuLibraryUnload)             \
  CALL(cuLibraryGetKernel)          \
  CALL(cuLibraryGetGlobal)          \
  CALL(cuLibraryGetManaged)         \
  CALL(cuLaunchKernel)

struct Driver {
#define ALIQUOT_RUNTIME_POINTER(symbol) driver_abi::fn::symbol symbol = nullptr;
  ALIQUOT_RUNTIME_CALLS(ALIQUOT_RUNTIME_POINTER)
#undef ALIQUOT_RUNTIME_POINTER
  CUresult ready = CUDA_ERROR_NOT_INITIALIZED;  // of loading it and cuInit
};

// Loaded and initialised at the first call.
const Driver& driver();

// The device of this thread's calls; 0 until it chooses one.
int& thread_device();

// Makes the thread's context current: the one it has, else its device's primary context.
CUresult enter();

// Remembers a failure for cudaGetLastError of this thread; returns it.
CUresult noted(CUresult result);
CUresult& last_error();

// act(driver) in the thread's context.
template <typename Act>
CUresult with_context(Act act) {
  CUresult result = enter();
  if (result == CUDA_SUCCESS) result = act(driver());
  return noted(result);
}

}  // namespace aliquot::runtime
