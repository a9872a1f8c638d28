// Linear memory: reserve what the driver will take, let it, write it down.
#include <algorithm>

#include "interposer/devices.h"
#include "interposer/guards.h"
#include "interposer/holdings.h"
#include "interposer/pools.h"
#include "interposer/real_driver.h"

namespace aliquot::interposer {
namespace {

using wire::Kind;

// Writes a new allocation down, or gives it back to the driver: nothing is left half done.
CUresult keep_pointer(Reservation& reservation, CUdeviceptr address, std::uint64_t context) {
  if (keep(held_pointers(), reservation, address, context)) return CUDA_SUCCESS;
  real::cuMemFree_v2(address);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

// `call(address)` is the driver's allocation. Where there is no current context the driver says so
// itself; should it give memory all the same, it gets it back.
template <class Pointer, class Call>
CUresult allocate(Pointer* out, std::uint64_t bytes, Call call) {
  const Place place = current_place();
  if (place.result == CUDA_SUCCESS && place.gpu == kForeignGpu) return CUDA_ERROR_INVALID_DEVICE;
  Reservation reservation(place.result == CUDA_SUCCESS ? place.gpu : kNoGpu, Kind::kLinear,
                          round_up(bytes, kLinearGranule));
  if (!reservation.granted()) return CUDA_ERROR_OUT_OF_MEMORY;
  Pointer address{};
  CUresult result = call(out != nullptr ? &address : nullptr);
  if (result != CUDA_SUCCESS) return result;
  if (place.result != CUDA_SUCCESS) {
    real::cuMemFree_v2(address);
    return place.result;
  }
  result = keep_pointer(reservation, address, place.context);
  if (result == CUDA_SUCCESS) *out = address;
  return result;
}

// The driver chooses the pitch: reserve for the least it can be, then for what it is.
template <class Pointer, class Size, class Call>
CUresult allocate_pitched(Pointer* out, Size* pitch_out, std::uint64_t width, std::uint64_t height,
                          Call call) {
  const Place place = current_place();
  if (place.result == CUDA_SUCCESS && place.gpu == kForeignGpu) return CUDA_ERROR_INVALID_DEVICE;
  Reservation reservation(place.result == CUDA_SUCCESS ? place.gpu : kNoGpu, Kind::kLinear,
                          saturating_product(round_up(width, kLinearGranule), height));
  if (!reservation.granted()) return CUDA_ERROR_OUT_OF_MEMORY;
  Pointer address{};
  Size pitch{};
  CUresult result =
      call(out != nullptr ? &address : nullptr, pitch_out != nullptr ? &pitch : nullptr);
  if (result != CUDA_SUCCESS) return result;
  const std::uint64_t taken = round_up(saturating_product(pitch, height), kLinearGranule);
  if (place.result != CUDA_SUCCESS || !reservation.resize(taken)) {
    real::cuMemFree_v2(address);
    return place.result != CUDA_SUCCESS ? place.result : CUDA_ERROR_OUT_OF_MEMORY;
  }
  result = keep_pointer(reservation, address, place.context);
  if (result != CUDA_SUCCESS) return result;
  *out = address;
  *pitch_out = pitch;
  return CUDA_SUCCESS;
}

}  // namespace

namespace guard {

CUresult cuMemAlloc(CUdeviceptr_v1* address, unsigned int size) {
  return allocate(address, size, [&](auto* at) { return real::cuMemAlloc(at, size); });
}
CUresult cuMemAlloc_v2(CUdeviceptr* address, size_t size) {
  return allocate(address, size, [&](auto* at) { return real::cuMemAlloc_v2(at, size); });
}
// Managed bytes count against the GPU they were asked on, whether they are resident or not.
CUresult cuMemAllocManaged(CUdeviceptr* address, size_t size, unsigned int flags) {
  return allocate(address, size,
                  [&](auto* at) { return real::cuMemAllocManaged(at, size, flags); });
}

CUresult cuMemAllocPitch(CUdeviceptr_v1* address, unsigned int* pitch, unsigned int width_in_bytes,
                         unsigned int height, unsigned int element_size_bytes) {
  return allocate_pitched(address, pitch, width_in_bytes, height, [&](auto* at, auto* chosen) {
    return real::cuMemAllocPitch(at, chosen, width_in_bytes, height, element_size_bytes);
  });
}
CUresult cuMemAllocPitch_v2(CUdeviceptr* address, size_t* pitch, size_t width_in_bytes,
                            size_t height, unsigned int element_size_bytes) {
  return allocate_pitched(address, pitch, width_in_bytes, height, [&](auto* at, auto* chosen) {
    return real::cuMemAllocPitch_v2(at, chosen, width_in_bytes, height, element_size_bytes);
  });
}

// Who opens the handle keeps the memory beyond our cuMemFree, and no call of ours sees when: it
// stays charged until this process ends. Forgotten here, it is nothing that a free could give back.
// A handle is given out only once it is known of which allocation.
CUresult cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr address) {
  CUipcMemHandle made;
  CUresult result = real::cuIpcGetMemHandle(handle != nullptr ? &made : nullptr, address);
  if (result != CUDA_SUCCESS) return result;
  CUdeviceptr base = 0;
  std::size_t size = 0;
  result = real::cuMemGetAddressRange_v2(&base, &size, address);
  if (result != CUDA_SUCCESS) return result;
  held_pointers().take(base);
  *handle = made;
  return result;
}

CUresult cuMemFree(CUdeviceptr_v1 address) {
  return release(address, [&] { return real::cuMemFree(address); });
}
CUresult cuMemFree_v2(CUdeviceptr address) {
  return release(address, [&] { return real::cuMemFree_v2(address); });
}

}  // namespace guard
}  // namespace aliquot::interposer
