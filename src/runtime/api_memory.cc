// cudaMalloc and its kin, copies and fills; devices and errors.
#include "runtime/driver.h"

namespace runtime = aliquot::runtime;
using runtime::Driver;
using runtime::with_context;

namespace {

CUdeviceptr address_of(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

// allocate(driver, address) into *pointer; of no size it is null, as with the CUDA runtime.
template <typename Allocate>
CUresult allocated(void** pointer, std::size_t bytes, Allocate allocate) {
  if (pointer == nullptr) return runtime::noted(CUDA_ERROR_INVALID_VALUE);
  *pointer = nullptr;
  if (bytes == 0) return CUDA_SUCCESS;
  CUdeviceptr address = 0;
  const CUresult result = with_context([&](const Driver& it) { return allocate(it, &address); });
  if (result == CUDA_SUCCESS) *pointer = reinterpret_cast<void*>(address);
  return result;
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): the names of the CUDA runtime
extern "C" {

CUresult cudaGetDeviceCount(int* count) {
  const Driver& it = runtime::driver();
  return runtime::noted(it.ready == CUDA_SUCCESS ? it.cuDeviceGetCount(count) : it.ready);
}
CUresult cudaSetDevice(int device) {
  int count = 0;
  if (const CUresult counted = cudaGetDeviceCount(&count)) return counted;
  if (device < 0 || device >= count) return runtime::noted(CUDA_ERROR_INVALID_DEVICE);
  runtime::thread_device() = device;
  runtime::driver().cuCtxSetCurrent(nullptr);
  return runtime::noted(runtime::enter());
}
CUresult cudaGetDevice(int* device) {
  *device = runtime::thread_device();
  return CUDA_SUCCESS;
}
CUresult cudaDeviceSynchronize() {
  return with_context([](const Driver& it) { return it.cuCtxSynchronize(); });
}
CUresult cudaDriverGetVersion(int* version) {
  const Driver& it = runtime::driver();
  return runtime::noted(it.ready == CUDA_SUCCESS ? it.cuDriverGetVersion(version) : it.ready);
}

CUresult cudaPeekAtLastError() { return runtime::last_error(); }
CUresult cudaGetLastError() {
  const CUresult last = runtime::last_error();
  runtime::last_error() = CUDA_SUCCESS;
  return last;
}
// In the driver's words: the numbers are the same, the CUDA runtime's names are others.
const char* cudaGetErrorName(CUresult error) {
  const char* text = nullptr;
  const Driver& it = runtime::driver();
  if (it.cuGetErrorName != nullptr) it.cuGetErrorName(error, &text);
  return text != nullptr ? text : "unrecognized error code";
}
const char* cudaGetErrorString(CUresult error) {
  const char* text = nullptr;
  const Driver& it = runtime::driver();
  if (it.cuGetErrorString != nullptr) it.cuGetErrorString(error, &text);
  return text != nullptr ? text : "unrecognized error code";
}

CUresult cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  return with_context([&](const Driver& it) { return it.cuMemGetInfo_v2(free, total); });
}
CUresult cudaMalloc(void** pointer, std::size_t bytes) {
  return allocated(pointer, bytes, [&](const Driver& it, CUdeviceptr* address) {
    return it.cuMemAlloc_v2(address, bytes);
  });
}
CUresult cudaMallocManaged(void** pointer, std::size_t bytes, unsigned flags) {
  return allocated(pointer, bytes, [&](const Driver& it, CUdeviceptr* address) {
    return it.cuMemAllocManaged(address, bytes, flags);
  });
}
CUresult cudaMallocAsync(void** pointer, std::size_t bytes, CUstream stream) {
  return allocated(pointer, bytes, [&](const Driver& it, CUdeviceptr* address) {
    return it.cuMemAllocAsync(address, bytes, stream);
  });
}
CUresult cudaFree(void* pointer) {
  return with_context([&](const Driver& it) {
    return pointer == nullptr ? CUDA_SUCCESS : it.cuMemFree_v2(address_of(pointer));
  });
}
CUresult cudaFreeAsync(void* pointer, CUstream stream) {
  return with_context(
      [&](const Driver& it) { return it.cuMemFreeAsync(address_of(pointer), stream); });
}
CUresult cudaHostAlloc(void** pointer, std::size_t bytes, unsigned flags) {
  return with_context([&](const Driver& it) { return it.cuMemHostAlloc(pointer, bytes, flags); });
}
CUresult cudaMallocHost(void** pointer, std::size_t bytes) {
  return cudaHostAlloc(pointer, bytes, 0);
}
CUresult cudaFreeHost(void* pointer) {
  return with_context([&](const Driver& it) { return it.cuMemFreeHost(pointer); });
}

// The direction is told by the addresses themselves.
CUresult cudaMemcpy(void* to, const void* from, std::size_t bytes, int) {
  return with_context(
      [&](const Driver& it) { return it.cuMemcpy(address_of(to), address_of(from), bytes); });
}
CUresult cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, int, CUstream stream) {
  return with_context([&](const Driver& it) {
    return it.cuMemcpyAsync(address_of(to), address_of(from), bytes, stream);
  });
}
CUresult cudaMemset(void* to, int value, std::size_t bytes) {
  return with_context([&](const Driver& it) {
    return it.cuMemsetD8_v2(address_of(to), static_cast<unsigned char>(value), bytes);
  });
}
CUresult cudaMemsetAsync(void* to, int value, std::size_t bytes, CUstream stream) {
  return with_context([&](const Driver& it) {
    return it.cuMemsetD8Async(address_of(to), static_cast<unsigned char>(value), bytes, stream);
  });
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
