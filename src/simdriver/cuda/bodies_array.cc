// Arrays and mipmapped arrays.
#include "simdriver/cuda/array_objects.h"
#include "simdriver/cuda/bodies.h"
#include "simdriver/cuda/requests.h"

using namespace aliquot::simdriver;  // NOLINT(google-build-using-namespace)

namespace {

// Array memory is laid out in pages of 64 KiB.
constexpr std::uint64_t kArrayPage = 65536;

CUresult create(CUarray* handle, const CUDA_ARRAY3D_DESCRIPTOR& shape) {
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  Context* context = nullptr;
  if (const CUresult result = current_context(context)) return result;
  return create_array(*context, shape, *handle);
}

CUresult requirements(CUDA_ARRAY_MEMORY_REQUIREMENTS* out, const Array& array,
                      std::uint64_t bytes) {
  if ((array.shape.flags & CUDA_ARRAY3D_DEFERRED_MAPPING) == 0) return CUDA_ERROR_INVALID_VALUE;
  *out = {};
  out->bytes = (bytes + kArrayPage - 1) / kArrayPage * kArrayPage;
  out->alignment = kArrayPage;
  return CUDA_SUCCESS;
}

CUDA_ARRAY3D_DESCRIPTOR widened(const CUDA_ARRAY3D_DESCRIPTOR_v1& shape) {
  return {shape.width, shape.height, shape.depth, shape.format, shape.channels, shape.flags};
}

}  // namespace

extern "C" {

CUresult sim_cuArray3DCreate_v2(CUarray* handle, const CUDA_ARRAY3D_DESCRIPTOR* shape) {
  if (shape == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return create(handle, *shape);
}
CUresult sim_cuArray3DCreate(CUarray* handle, const CUDA_ARRAY3D_DESCRIPTOR_v1* shape) {
  if (shape == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return create(handle, widened(*shape));
}
CUresult sim_cuArrayCreate_v2(CUarray* handle, const CUDA_ARRAY_DESCRIPTOR* shape) {
  if (shape == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return create(handle, {shape->width, shape->height, 0, shape->format, shape->channels, 0});
}
CUresult sim_cuArrayCreate(CUarray* handle, const CUDA_ARRAY_DESCRIPTOR_v1* shape) {
  if (shape == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return create(handle, {shape->width, shape->height, 0, shape->format, shape->channels, 0});
}

CUresult sim_cuArrayDestroy(CUarray handle) {
  Lock lock = hold();
  const Array* array = find_array(handle);
  if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (const CUresult result = synchronise(lock, *array->context)) return result;
  return destroy_array(handle);
}

CUresult sim_cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR* out, CUarray handle) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  const Array* array = find_array(handle);
  if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *out = array->shape;
  return CUDA_SUCCESS;
}
CUresult sim_cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR* out, CUarray handle) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  const Array* array = find_array(handle);
  if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *out = {array->shape.width, array->shape.height, array->shape.format, array->shape.channels};
  return CUDA_SUCCESS;
}

CUresult sim_cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS* out, CUarray handle,
                                          CUdevice device) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  const Array* array = find_array(handle);
  if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (library().device(device) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  return requirements(out, *array, array->bytes());
}

CUresult sim_cuMipmappedArrayCreate(CUmipmappedArray* handle, const CUDA_ARRAY3D_DESCRIPTOR* shape,
                                    unsigned int levels) {
  if (handle == nullptr || shape == nullptr || levels == 0) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  Context* context = nullptr;
  if (const CUresult result = current_context(context)) return result;
  return create_mipmap(*context, *shape, levels, *handle);
}

CUresult sim_cuMipmappedArrayDestroy(CUmipmappedArray handle) {
  Lock lock = hold();
  const Mipmap* mipmap = find_mipmap(handle);
  if (mipmap == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (const CUresult result = synchronise(lock, *mipmap->whole.context)) return result;
  return destroy_mipmap(handle);
}

CUresult sim_cuMipmappedArrayGetLevel(CUarray* out, CUmipmappedArray handle, unsigned int level) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  const Mipmap* mipmap = find_mipmap(handle);
  if (mipmap == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (level >= mipmap->levels.size()) return CUDA_ERROR_INVALID_VALUE;
  *out = mipmap->levels[level];
  return CUDA_SUCCESS;
}

CUresult sim_cuMipmappedArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS* out,
                                                   CUmipmappedArray handle, CUdevice device) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  const Mipmap* mipmap = find_mipmap(handle);
  if (mipmap == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (library().device(device) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  return requirements(out, mipmap->whole, mipmap->bytes);
}

}  // extern "C"
