// Stream-ordered memory: reserve the most the pool can grow, keep what it did grow.
#include "interposer/contexts.h"
#include "interposer/copied.h"
#include "interposer/guards.h"
#include "interposer/pools.h"
#include "interposer/real_driver.h"

namespace aliquot::interposer {
namespace {

using wire::Kind;

// While a stream is captured an allocation becomes a node of the graph; nothing is taken now.
using IsCapturing = CUresult (*)(CUstream, CUstreamCaptureStatus*);
bool is_capturing(CUstream stream, IsCapturing ask) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return ask(stream, &status) == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_NONE;
}

// The stream's device; a stream may belong to another context than the current one.
CUresult device_of_stream(CUstream stream, CUdevice* device) {
  if (has(driver_abi::Cuda::cuStreamGetDevice) &&
      real::cuStreamGetDevice(stream, device) == CUDA_SUCCESS)
    return CUDA_SUCCESS;
  CUcontext context = nullptr;
  if (stream == nullptr || real::cuStreamGetCtx(stream, &context) != CUDA_SUCCESS ||
      real::cuCtxPushCurrent_v2(context) != CUDA_SUCCESS)
    return real::cuCtxGetDevice(device);
  const CUresult result = real::cuCtxGetDevice(device);
  real::cuCtxPopCurrent_v2(&context);
  return result;
}

// An allocation is remembered to know its pool when it is freed; its bytes are in the pool's
// charge.
bool remember(CUdeviceptr address, CUmemoryPool pool, std::uint64_t bytes, unsigned gpu) {
  Held unseen;
  const Held entry{address, name_of(pool), bytes, static_cast<std::uint64_t>(Kind::kPool), gpu};
  if (!held_pointers().insert(entry, &unseen)) return false;
  let_go(unseen);
  return true;
}

template <class Call>
CUresult allocate(CUdeviceptr* out, std::uint64_t bytes, CUmemoryPool pool, unsigned gpu,
                  Call call) {
  PoolRecord* record = pool_record(pool, gpu);
  if (record == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  PoolCall growth(*record, most_growth(pool, bytes));
  if (!growth.granted()) return CUDA_ERROR_OUT_OF_MEMORY;
  CUdeviceptr address = 0;
  const CUresult result = call(out != nullptr ? &address : nullptr);
  if (result != CUDA_SUCCESS) return result;
  const bool settled = growth.settle();
  if (!settled || !remember(address, pool, round_up(bytes, kLinearGranule), gpu)) {
    real::cuMemFree_v2(address);  // waits for the stream, so that the trim finds it free
    real::cuMemPoolTrimTo(pool, 0);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *out = address;
  return result;
}

template <class Call>
CUresult allocate_on_stream(CUdeviceptr* out, std::uint64_t bytes, CUstream stream,
                            IsCapturing capturing, Call call) {
  if (is_capturing(stream, capturing)) return call(out);
  CUdevice device = -1;
  CUresult result = device_of_stream(stream, &device);
  if (result != CUDA_SUCCESS) return result;
  const unsigned gpu = gpu_of(device);
  if (gpu == kForeignGpu) return why_foreign(device);
  CUmemoryPool pool = nullptr;
  result = real::cuDeviceGetMemPool(&pool, device);
  if (result != CUDA_SUCCESS) return result;
  return allocate(out, bytes, pool, gpu, call);
}

template <class Call>
CUresult allocate_from(CUdeviceptr* out, std::uint64_t bytes, CUmemoryPool pool, CUstream stream,
                       IsCapturing capturing, Call call) {
  if (is_capturing(stream, capturing)) return call(out);
  CUdevice device = -1;
  const CUresult result = device_of_stream(stream, &device);
  if (result != CUDA_SUCCESS) return result;
  const unsigned gpu = gpu_of(device);
  if (gpu == kForeignGpu) return why_foreign(device);
  // A pool that was made past us is taken to lie on the stream's device.
  return allocate(out, bytes, pool, gpu, call);
}

}  // namespace

namespace guard {

CUresult cuMemAllocAsync(CUdeviceptr* address, size_t bytes, CUstream stream) {
  return allocate_on_stream(address, bytes, stream, &real::cuStreamIsCapturing,
                            [&](auto* at) { return real::cuMemAllocAsync(at, bytes, stream); });
}
CUresult cuMemAllocAsync_ptsz(CUdeviceptr* address, size_t bytes, CUstream stream) {
  return allocate_on_stream(address, bytes, stream, &real::cuStreamIsCapturing_ptsz, [&](auto* at) {
    return real::cuMemAllocAsync_ptsz(at, bytes, stream);
  });
}
CUresult cuMemAllocFromPoolAsync(CUdeviceptr* address, size_t bytes, CUmemoryPool pool,
                                 CUstream stream) {
  return allocate_from(address, bytes, pool, stream, &real::cuStreamIsCapturing, [&](auto* at) {
    return real::cuMemAllocFromPoolAsync(at, bytes, pool, stream);
  });
}
CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr* address, size_t bytes, CUmemoryPool pool,
                                      CUstream stream) {
  return allocate_from(
      address, bytes, pool, stream, &real::cuStreamIsCapturing_ptsz,
      [&](auto* at) { return real::cuMemAllocFromPoolAsync_ptsz(at, bytes, pool, stream); });
}

CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
  return release(address, [&] { return real::cuMemFreeAsync(address, stream); });
}
CUresult cuMemFreeAsync_ptsz(CUdeviceptr address, CUstream stream) {
  return release(address, [&] { return real::cuMemFreeAsync_ptsz(address, stream); });
}

CUresult cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* pool_props) {
  const Copied wanted(pool_props);
  const unsigned gpu = wanted.at != nullptr ? gpu_of(wanted.copy.location) : kNoGpu;
  if (gpu == kForeignGpu) return why_foreign(wanted.copy.location.id);
  CUmemoryPool made = nullptr;
  const CUresult result = real::cuMemPoolCreate(pool != nullptr ? &made : nullptr, wanted.at);
  if (result != CUDA_SUCCESS) return result;
  if (pool_record(made, gpu) == nullptr) {  // more pools at once than we can keep books of
    real::cuMemPoolDestroy(made);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *pool = made;
  return result;
}

// Allocations outlive their pool; only what it kept in reserve comes back now.
CUresult cuMemPoolDestroy(CUmemoryPool pool) {
  std::uint64_t used = 0;
  if (real::cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used) != CUDA_SUCCESS)
    used = ~0ull;  // then all of it stays charged
  const CUresult result = real::cuMemPoolDestroy(pool);
  if (result == CUDA_SUCCESS) pool_ended(pool, used);
  return result;
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t min_bytes_to_keep) {
  const CUresult result = real::cuMemPoolTrimTo(pool, min_bytes_to_keep);
  if (result == CUDA_SUCCESS)
    settle_pool_of({0, name_of(pool), 0, static_cast<std::uint64_t>(Kind::kPool), 0});
  return result;
}

}  // namespace guard
}  // namespace aliquot::interposer
