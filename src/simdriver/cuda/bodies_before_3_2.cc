// Calls from before CUDA 3.2, whose addresses and sizes have 32 bits: the later ones, widened. What
// such a program allocates lies below 4 GiB; what it is told of other memory may not fit, and is
// refused then.
#include <limits>

#include "simdriver/cuda/allocate.h"
#include "simdriver/cuda/bodies.h"
#include "simdriver/cuda/graphs.h"

using namespace aliquot::simdriver;  // NOLINT(google-build-using-namespace)

namespace {

CUresult allocate(CUdeviceptr_v1* address, std::uint64_t bytes) {
  if (address == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  Context* context = nullptr;
  if (const CUresult result = current_context(context)) return result;
  if (const CUresult result = refuse_during_capture()) return result;
  std::uint64_t at = 0;
  const CUresult result = allocate_low(*context, bytes, at);
  if (result == CUDA_SUCCESS) *address = static_cast<CUdeviceptr_v1>(at);
  return result;
}

// Nothing is written where the value is too large; `to` may be left out.
CUresult narrow(std::uint64_t value, unsigned* to) {
  if (value > std::numeric_limits<unsigned>::max()) return CUDA_ERROR_NOT_SUPPORTED;
  if (to != nullptr) *to = static_cast<unsigned>(value);
  return CUDA_SUCCESS;
}

CUDA_MEMCPY2D wide(const CUDA_MEMCPY2D_v1& copy) {
  return {copy.from_x_bytes, copy.from_y,     copy.from_type,   copy.from_host,
          copy.from_device,  copy.from_array, copy.from_pitch,  copy.to_x_bytes,
          copy.to_y,         copy.to_type,    copy.to_host,     copy.to_device,
          copy.to_array,     copy.to_pitch,   copy.width_bytes, copy.height};
}

CUDA_MEMCPY3D wide(const CUDA_MEMCPY3D_v1& copy) {
  return {copy.from_x_bytes, copy.from_y,      copy.from_z,      copy.from_level, copy.from_type,
          copy.from_host,    copy.from_device, copy.from_array,  copy.reserved0,  copy.from_pitch,
          copy.from_height,  copy.to_x_bytes,  copy.to_y,        copy.to_z,       copy.to_level,
          copy.to_type,      copy.to_host,     copy.to_device,   copy.to_array,   copy.reserved1,
          copy.to_pitch,     copy.to_height,   copy.width_bytes, copy.height,     copy.depth};
}

}  // namespace

extern "C" {

CUresult sim_cuMemAlloc(CUdeviceptr_v1* address, unsigned int bytes) {
  return allocate(address, bytes);
}
CUresult sim_cuMemAllocPitch(CUdeviceptr_v1* address, unsigned int* pitch,
                             unsigned int width_in_bytes, unsigned int height,
                             unsigned int element_size_bytes) {
  if (pitch == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::uint64_t row = 0;
  CUresult result = pitch_of(width_in_bytes, height, element_size_bytes, row);
  if (result == CUDA_SUCCESS) result = allocate(address, row * height);
  return result == CUDA_SUCCESS ? narrow(row, pitch) : result;
}
CUresult sim_cuMemFree(CUdeviceptr_v1 address) { return sim_cuMemFree_v2(address); }
CUresult sim_cuMemGetAddressRange(CUdeviceptr_v1* base, unsigned int* size,
                                  CUdeviceptr_v1 address) {
  CUdeviceptr wide_base = 0;
  size_t wide_size = 0;
  CUresult result = sim_cuMemGetAddressRange_v2(&wide_base, &wide_size, address);
  if (result == CUDA_SUCCESS) result = narrow(wide_base, base);
  return result == CUDA_SUCCESS ? narrow(wide_size, size) : result;
}
CUresult sim_cuMemHostGetDevicePointer(CUdeviceptr_v1* address, void* p, unsigned int flags) {
  if (address == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUdeviceptr at = 0;
  const CUresult result = sim_cuMemHostGetDevicePointer_v2(&at, p, flags);
  return result == CUDA_SUCCESS ? narrow(at, address) : result;
}
CUresult sim_cuModuleGetGlobal(CUdeviceptr_v1* address, unsigned int* bytes, CUmodule module,
                               const char* name) {
  CUdeviceptr at = 0;
  size_t size = 0;
  CUresult result = sim_cuModuleGetGlobal_v2(&at, &size, module, name);
  if (result == CUDA_SUCCESS && address != nullptr) result = narrow(at, address);
  return result == CUDA_SUCCESS ? narrow(size, bytes) : result;
}

CUresult sim_cuArrayGetDescriptor(CUDA_ARRAY_DESCRIPTOR_v1* out, CUarray array) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUDA_ARRAY_DESCRIPTOR shape{};
  if (const CUresult result = sim_cuArrayGetDescriptor_v2(&shape, array)) return result;
  *out = {static_cast<unsigned>(shape.width), static_cast<unsigned>(shape.height), shape.format,
          shape.channels};
  return CUDA_SUCCESS;
}
CUresult sim_cuArray3DGetDescriptor(CUDA_ARRAY3D_DESCRIPTOR_v1* out, CUarray array) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUDA_ARRAY3D_DESCRIPTOR shape{};
  if (const CUresult result = sim_cuArray3DGetDescriptor_v2(&shape, array)) return result;
  *out = {static_cast<unsigned>(shape.width),
          static_cast<unsigned>(shape.height),
          static_cast<unsigned>(shape.depth),
          shape.format,
          shape.channels,
          shape.flags};
  return CUDA_SUCCESS;
}

CUresult sim_cuMemcpyHtoD(CUdeviceptr_v1 to, const void* from, unsigned int bytes) {
  return sim_cuMemcpyHtoD_v2(to, from, bytes);
}
CUresult sim_cuMemcpyHtoDAsync(CUdeviceptr_v1 to, const void* from, unsigned int bytes,
                               CUstream stream) {
  return sim_cuMemcpyHtoDAsync_v2(to, from, bytes, stream);
}
CUresult sim_cuMemcpyDtoH(void* to, CUdeviceptr_v1 from, unsigned int bytes) {
  return sim_cuMemcpyDtoH_v2(to, from, bytes);
}
CUresult sim_cuMemcpyDtoHAsync(void* to, CUdeviceptr_v1 from, unsigned int bytes, CUstream stream) {
  return sim_cuMemcpyDtoHAsync_v2(to, from, bytes, stream);
}
CUresult sim_cuMemcpyDtoD(CUdeviceptr_v1 to, CUdeviceptr_v1 from, unsigned int bytes) {
  return sim_cuMemcpyDtoD_v2(to, from, bytes);
}
CUresult sim_cuMemcpyDtoDAsync(CUdeviceptr_v1 to, CUdeviceptr_v1 from, unsigned int bytes,
                               CUstream stream) {
  return sim_cuMemcpyDtoDAsync_v2(to, from, bytes, stream);
}
CUresult sim_cuMemcpyAtoA(CUarray to, unsigned int to_offset, CUarray from,
                          unsigned int from_offset, unsigned int bytes) {
  return sim_cuMemcpyAtoA_v2(to, to_offset, from, from_offset, bytes);
}
CUresult sim_cuMemcpyAtoD(CUdeviceptr_v1 to, CUarray from, unsigned int from_offset,
                          unsigned int bytes) {
  return sim_cuMemcpyAtoD_v2(to, from, from_offset, bytes);
}
CUresult sim_cuMemcpyDtoA(CUarray to, unsigned int to_offset, CUdeviceptr_v1 from,
                          unsigned int bytes) {
  return sim_cuMemcpyDtoA_v2(to, to_offset, from, bytes);
}
CUresult sim_cuMemcpyAtoH(void* to, CUarray from, unsigned int from_offset, unsigned int bytes) {
  return sim_cuMemcpyAtoH_v2(to, from, from_offset, bytes);
}
CUresult sim_cuMemcpyAtoHAsync(void* to, CUarray from, unsigned int from_offset, unsigned int bytes,
                               CUstream stream) {
  return sim_cuMemcpyAtoHAsync_v2(to, from, from_offset, bytes, stream);
}
CUresult sim_cuMemcpyHtoA(CUarray to, unsigned int to_offset, const void* from,
                          unsigned int bytes) {
  return sim_cuMemcpyHtoA_v2(to, to_offset, from, bytes);
}
CUresult sim_cuMemcpyHtoAAsync(CUarray to, unsigned int to_offset, const void* from,
                               unsigned int bytes, CUstream stream) {
  return sim_cuMemcpyHtoAAsync_v2(to, to_offset, from, bytes, stream);
}

CUresult sim_cuMemcpy2D(const CUDA_MEMCPY2D_v1* copy) {
  if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_MEMCPY2D widened = wide(*copy);
  return sim_cuMemcpy2D_v2(&widened);
}
CUresult sim_cuMemcpy2DUnaligned(const CUDA_MEMCPY2D_v1* copy) { return sim_cuMemcpy2D(copy); }
CUresult sim_cuMemcpy2DAsync(const CUDA_MEMCPY2D_v1* copy, CUstream stream) {
  if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_MEMCPY2D widened = wide(*copy);
  return sim_cuMemcpy2DAsync_v2(&widened, stream);
}
CUresult sim_cuMemcpy3D(const CUDA_MEMCPY3D_v1* copy) {
  if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_MEMCPY3D widened = wide(*copy);
  return sim_cuMemcpy3D_v2(&widened);
}
CUresult sim_cuMemcpy3DAsync(const CUDA_MEMCPY3D_v1* copy, CUstream stream) {
  if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_MEMCPY3D widened = wide(*copy);
  return sim_cuMemcpy3DAsync_v2(&widened, stream);
}

CUresult sim_cuMemsetD8(CUdeviceptr_v1 to, unsigned char value, unsigned int count) {
  return sim_cuMemsetD8_v2(to, value, count);
}
CUresult sim_cuMemsetD16(CUdeviceptr_v1 to, unsigned short value, unsigned int count) {
  return sim_cuMemsetD16_v2(to, value, count);
}
CUresult sim_cuMemsetD32(CUdeviceptr_v1 to, unsigned int value, unsigned int count) {
  return sim_cuMemsetD32_v2(to, value, count);
}
CUresult sim_cuMemsetD2D8(CUdeviceptr_v1 to, unsigned int pitch, unsigned char value,
                          unsigned int width, unsigned int height) {
  return sim_cuMemsetD2D8_v2(to, pitch, value, width, height);
}
CUresult sim_cuMemsetD2D16(CUdeviceptr_v1 to, unsigned int pitch, unsigned short value,
                           unsigned int width, unsigned int height) {
  return sim_cuMemsetD2D16_v2(to, pitch, value, width, height);
}
CUresult sim_cuMemsetD2D32(CUdeviceptr_v1 to, unsigned int pitch, unsigned int value,
                           unsigned int width, unsigned int height) {
  return sim_cuMemsetD2D32_v2(to, pitch, value, width, height);
}

}  // extern "C"
