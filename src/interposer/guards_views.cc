// What a program sees of its share: one consistent pair, total = min(limit, physical) and
// free = what the whole lease has left, never below 0. A lease that is only observed sees the GPU.
#include <algorithm>

#include "interposer/devices.h"
#include "interposer/guards.h"
#include "interposer/pools.h"
#include "interposer/real_driver.h"

namespace aliquot::interposer {
namespace {

std::uint64_t share_total(unsigned gpu, std::uint64_t physical) {
  return tenant().is_observed() ? physical : std::min(limit_bytes(gpu), physical);
}

// Old calls have 32-bit sizes; what does not fit is said as the most that does.
template <class Size>
Size fitting(std::uint64_t bytes) {
  return static_cast<Size>(std::min<std::uint64_t>(bytes, static_cast<Size>(-1)));
}

// Either pointer may be null, as for the driver.
template <class Size>
CUresult memory_info(Size* free, Size* total, CUresult (*ask)(Size*, Size*)) {
  Size free_there{};
  Size physical{};  // bounds what is free, so it is asked for even where the caller does not
  const CUresult result = ask(free != nullptr ? &free_there : nullptr, &physical);
  if (result != CUDA_SUCCESS) return result;
  const Place place = current_place();
  if (place.result != CUDA_SUCCESS) return place.result;
  if (place.gpu == kForeignGpu) return CUDA_ERROR_INVALID_DEVICE;
  settle_pools(place.gpu);
  if (tenant().is_observed()) {
    if (free != nullptr) *free = free_there;
    if (total != nullptr) *total = physical;
    return CUDA_SUCCESS;
  }
  const std::uint64_t all = share_total(place.gpu, physical);
  const std::uint64_t used = used_bytes(place.gpu);
  if (free != nullptr) *free = fitting<Size>(all > used ? all - used : 0);
  if (total != nullptr) *total = fitting<Size>(all);
  return CUDA_SUCCESS;
}

template <class Size>
CUresult total_memory(Size* bytes, CUdevice device, CUresult (*ask)(Size*, CUdevice)) {
  Size physical{};
  const CUresult result = ask(bytes != nullptr ? &physical : nullptr, device);
  if (result != CUDA_SUCCESS) return result;
  const unsigned gpu = gpu_of(device);
  if (gpu == kForeignGpu) return CUDA_ERROR_INVALID_DEVICE;
  *bytes = fitting<Size>(share_total(gpu, physical));
  return CUDA_SUCCESS;
}

}  // namespace

namespace guard {

CUresult cuMemGetInfo(unsigned int* free, unsigned int* total) {
  return memory_info(free, total, &real::cuMemGetInfo);
}
CUresult cuMemGetInfo_v2(size_t* free, size_t* total) {
  return memory_info(free, total, &real::cuMemGetInfo_v2);
}
CUresult cuDeviceTotalMem(unsigned int* bytes, CUdevice device) {
  return total_memory(bytes, device, &real::cuDeviceTotalMem);
}
CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
  return total_memory(bytes, device, &real::cuDeviceTotalMem_v2);
}

}  // namespace guard
}  // namespace aliquot::interposer
