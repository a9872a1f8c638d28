// Arrays and mipmapped arrays: what the driver's own requirement says, asked before the array is
// made; memory that another interface brought in is charged as it is imported.
//
// The requirement call answers only for arrays without memory (deferred mapping), so one like the
// wanted one is made for the question and thrown away. A driver too old for that (before 11.6), or
// one that refuses, leaves the size of the elements: the estimate is rounded up to 512 bytes.
#include <algorithm>

#include "interposer/contexts.h"
#include "interposer/copied.h"
#include "interposer/guards.h"
#include "interposer/physical_memory.h"
#include "interposer/real_driver.h"

namespace aliquot::interposer {
namespace {

using driver_abi::Cuda;
using wire::Kind;

constexpr unsigned kWithoutMemory = CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING;

std::uint64_t bytes_of_element(CUarray_format format) {
  switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
      return 1;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
      return 2;
    default:  // 32-bit elements; block and planar formats are smaller
      return 4;
  }
}

std::uint64_t estimate(const CUDA_ARRAY3D_DESCRIPTOR& wanted) {
  std::uint64_t bytes = bytes_of_element(wanted.format) * std::max(wanted.channels, 1u);
  for (const std::size_t side : {wanted.width, wanted.height, wanted.depth})
    bytes = saturating_product(bytes, std::max<std::size_t>(side, 1));
  return round_up(bytes, kLinearGranule);
}

std::uint64_t array_bytes(CUDA_ARRAY3D_DESCRIPTOR wanted, CUdevice device) {
  const std::uint64_t estimated = estimate(wanted);
  wanted.flags |= CUDA_ARRAY3D_DEFERRED_MAPPING;
  CUarray array = nullptr;
  if (!has(Cuda::cuArrayGetMemoryRequirements) ||
      real::cuArray3DCreate_v2(&array, &wanted) != CUDA_SUCCESS)
    return estimated;
  CUDA_ARRAY_MEMORY_REQUIREMENTS needs{};
  const CUresult result = real::cuArrayGetMemoryRequirements(&needs, array, device);
  real::cuArrayDestroy(array);
  return result == CUDA_SUCCESS ? needs.bytes : estimated;
}

// Each level has an eighth (or a quarter, or half) of the one before; twice the first is enough.
std::uint64_t mipmap_bytes(CUDA_ARRAY3D_DESCRIPTOR wanted, unsigned levels, CUdevice device) {
  const std::uint64_t estimated = saturating_product(estimate(wanted), levels > 1 ? 2 : 1);
  wanted.flags |= CUDA_ARRAY3D_DEFERRED_MAPPING;
  CUmipmappedArray array = nullptr;
  if (!has(Cuda::cuMipmappedArrayGetMemoryRequirements) ||
      real::cuMipmappedArrayCreate(&array, &wanted, levels) != CUDA_SUCCESS)
    return estimated;
  CUDA_ARRAY_MEMORY_REQUIREMENTS needs{};
  const CUresult result = real::cuMipmappedArrayGetMemoryRequirements(&needs, array, device);
  real::cuMipmappedArrayDestroy(array);
  return result == CUDA_SUCCESS ? needs.bytes : estimated;
}

// Where the current context cannot be told, what the driver makes all the same goes back to it.
template <class Handle, class Bytes, class Call, class Destroy>
CUresult create(Handle* out, Bytes bytes_on, Call call, Destroy destroy) {
  const Place place = current_place();
  const bool known = place.result == CUDA_SUCCESS;
  if (known && place.gpu == kForeignGpu) return CUDA_ERROR_INVALID_DEVICE;
  Reservation reservation(known ? place.gpu : kNoGpu, Kind::kArray,
                          known ? bytes_on(device_of(place.gpu)) : 0);
  if (!reservation.granted()) return CUDA_ERROR_OUT_OF_MEMORY;
  Handle made = nullptr;
  const CUresult result = call(out != nullptr ? &made : nullptr);
  if (result != CUDA_SUCCESS) return result;
  if (!known || !keep(held_objects(), reservation, name_of(made), place.context)) {
    destroy(made);
    return known ? CUDA_ERROR_OUT_OF_MEMORY : place.result;
  }
  *out = made;
  return result;
}

template <class Call>
CUresult create_array(CUarray* out, const CUDA_ARRAY3D_DESCRIPTOR& wanted, Call call) {
  return create(
      out,
      [&](CUdevice device) {
        return (wanted.flags & kWithoutMemory) != 0 ? 0 : array_bytes(wanted, device);
      },
      call, [](CUarray array) { real::cuArrayDestroy(array); });
}

template <class Handle, class Call>
CUresult destroy(Handle handle, Call call) {
  const Held entry = held_objects().take(name_of(handle));
  const CUresult result = call();
  if (result != CUDA_SUCCESS) {
    put_back(held_objects(), entry);
    return result;
  }
  let_go(entry);
  physical::unpin(name_of(handle), 0, physical::kEverywhere, kNoGpu);  // tiles of a sparse one
  return result;
}

}  // namespace

namespace guard {

CUresult cuArrayCreate(CUarray* handle, const CUDA_ARRAY_DESCRIPTOR_v1* descriptor) {
  const Copied wanted(descriptor);
  const auto call = [&](CUarray* at) { return real::cuArrayCreate(at, wanted.at); };
  if (wanted.at == nullptr) return call(handle);
  const auto& d = wanted.copy;
  return create_array(handle, {d.width, d.height, 0, d.format, d.channels, 0}, call);
}
CUresult cuArrayCreate_v2(CUarray* handle, const CUDA_ARRAY_DESCRIPTOR* descriptor) {
  const Copied wanted(descriptor);
  const auto call = [&](CUarray* at) { return real::cuArrayCreate_v2(at, wanted.at); };
  if (wanted.at == nullptr) return call(handle);
  const auto& d = wanted.copy;
  return create_array(handle, {d.width, d.height, 0, d.format, d.channels, 0}, call);
}
CUresult cuArray3DCreate(CUarray* handle, const CUDA_ARRAY3D_DESCRIPTOR_v1* descriptor) {
  const Copied wanted(descriptor);
  const auto call = [&](CUarray* at) { return real::cuArray3DCreate(at, wanted.at); };
  if (wanted.at == nullptr) return call(handle);
  const auto& d = wanted.copy;
  return create_array(handle, {d.width, d.height, d.depth, d.format, d.channels, d.flags}, call);
}
CUresult cuArray3DCreate_v2(CUarray* handle, const CUDA_ARRAY3D_DESCRIPTOR* descriptor) {
  const Copied wanted(descriptor);
  const auto call = [&](CUarray* at) { return real::cuArray3DCreate_v2(at, wanted.at); };
  return wanted.at == nullptr ? call(handle) : create_array(handle, wanted.copy, call);
}
CUresult cuArrayDestroy(CUarray array) {
  return destroy(array, [&] { return real::cuArrayDestroy(array); });
}

CUresult cuMipmappedArrayCreate(CUmipmappedArray* handle, const CUDA_ARRAY3D_DESCRIPTOR* descriptor,
                                unsigned int levels) {
  const Copied wanted(descriptor);
  const auto call = [&](CUmipmappedArray* at) {
    return real::cuMipmappedArrayCreate(at, wanted.at, levels);
  };
  if (wanted.at == nullptr) return call(handle);
  return create(
      handle,
      [&](CUdevice device) {
        return (wanted.copy.flags & kWithoutMemory) != 0
                   ? 0
                   : mipmap_bytes(wanted.copy, levels, device);
      },
      call, [](CUmipmappedArray array) { real::cuMipmappedArrayDestroy(array); });
}
CUresult cuMipmappedArrayDestroy(CUmipmappedArray array) {
  return destroy(array, [&] { return real::cuMipmappedArrayDestroy(array); });
}

// Memory of Vulkan, Direct3D or another maker, whom nobody else asks for a share.
CUresult cuImportExternalMemory(CUexternalMemory* memory,
                                const CUDA_EXTERNAL_MEMORY_HANDLE_DESC* description) {
  const Copied wanted(description);
  return create(
      memory, [&](CUdevice) { return round_up(wanted.copy.bytes, kLinearGranule); },
      [&](CUexternalMemory* at) { return real::cuImportExternalMemory(at, wanted.at); },
      [](CUexternalMemory made) { real::cuDestroyExternalMemory(made); });
}
CUresult cuDestroyExternalMemory(CUexternalMemory memory) {
  return destroy(memory, [&] { return real::cuDestroyExternalMemory(memory); });
}

}  // namespace guard
}  // namespace aliquot::interposer
