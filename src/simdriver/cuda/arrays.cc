#include "simdriver/cuda/arrays.h"

#include <algorithm>

#include "simdriver/cuda/allocate.h"
#include "simdriver/cuda/array_objects.h"

namespace aliquot::simdriver {
namespace {

struct Objects {
  Registry<Array> arrays;
  Registry<Mipmap> mipmaps;
};
Objects& objects() {
  static Objects* const instance = new Objects;  // NOLINT(cppcoreguidelines-owning-memory)
  return *instance;
}

bool without_memory(const CUDA_ARRAY3D_DESCRIPTOR& shape) {
  return (shape.flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING)) != 0;
}

CUresult lay_out(Context& context, const CUDA_ARRAY3D_DESCRIPTOR& shape, Array& array) {
  const std::uint64_t element = element_bytes(shape.format, shape.channels);
  if (element == 0 || shape.width == 0) return CUDA_ERROR_INVALID_VALUE;
  constexpr std::uint64_t kWidest = 1u << 28;
  if (shape.width > kWidest || shape.height > kWidest || shape.depth > kWidest) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const bool layered = (shape.flags & CUDA_ARRAY3D_LAYERED) != 0;
  if (shape.depth != 0 && shape.height == 0 && !layered) return CUDA_ERROR_INVALID_VALUE;
  array.shape = shape;
  array.context = &context;
  array.device = context.device;
  array.pitch = shape.width * element;
  // Checked by division: the product may pass 64 bits.
  if (array.rows() > kArenaBytes / array.pitch ||
      array.layers() > kArenaBytes / (array.pitch * array.rows())) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  return CUDA_SUCCESS;
}

CUresult take_memory(Array& array, std::uint64_t bytes) {
  Allocation allocation;
  allocation.kind = AllocationKind::kArray;
  allocation.context = array.context;
  allocation.device = array.device;
  return allocate_granules(MemoryKind::kArray, bytes, std::move(allocation), array.base);
}

void give_memory(const Array& array) {
  if (!array.owns_memory || array.base == 0) return;
  if (Allocation* allocation = library().memory().find(array.base)) free_allocation(*allocation);
}

}  // namespace

std::uint64_t element_bytes(CUarray_format format, unsigned channels) {
  if (channels != 1 && channels != 2 && channels != 4) return 0;
  switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
      return channels;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
      return 2ull * channels;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
      return 4ull * channels;
    default:
      return 0;
  }
}

Array* find_array(CUarray handle) { return objects().arrays.find(handle); }
Mipmap* find_mipmap(CUmipmappedArray handle) { return objects().mipmaps.find(handle); }

CUresult create_array(Context& context, const CUDA_ARRAY3D_DESCRIPTOR& shape, CUarray& handle) {
  auto array = std::make_unique<Array>();
  if (const CUresult result = lay_out(context, shape, *array)) return result;
  if (!without_memory(shape)) {
    if (const CUresult result = take_memory(*array, array->bytes())) return result;
  }
  handle = reinterpret_cast<CUarray>(objects().arrays.add(std::move(array)));
  return CUDA_SUCCESS;
}

CUresult destroy_array(CUarray handle) {
  const Array* array = find_array(handle);
  if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (!array->owns_memory) return CUDA_ERROR_ARRAY_IS_MAPPED;
  give_memory(*array);
  objects().arrays.remove(handle);
  return CUDA_SUCCESS;
}

CUresult create_mipmap(Context& context, const CUDA_ARRAY3D_DESCRIPTOR& shape, unsigned levels,
                       CUmipmappedArray& handle) {
  auto mipmap = std::make_unique<Mipmap>();
  if (const CUresult result = lay_out(context, shape, mipmap->whole)) return result;
  std::vector<std::unique_ptr<Array>> made;
  std::uint64_t bytes = 0;
  const auto half = [](std::size_t size, unsigned level) {
    return size == 0 ? 0 : std::max<std::size_t>(size >> level, 1);
  };
  const std::size_t largest = std::max({shape.width, shape.height, shape.depth});
  for (unsigned level = 0; level < levels && (largest >> level) != 0; ++level) {
    CUDA_ARRAY3D_DESCRIPTOR smaller = shape;
    smaller.width = half(shape.width, level);
    smaller.height = half(shape.height, level);
    smaller.depth = half(shape.depth, level);
    auto array = std::make_unique<Array>();
    if (const CUresult result = lay_out(context, smaller, *array)) return result;
    array->owns_memory = false;
    array->base = bytes;  // from the start of the whole, until there is one
    bytes += array->bytes();
    made.push_back(std::move(array));
  }
  if (!without_memory(shape)) {
    if (const CUresult result = take_memory(mipmap->whole, bytes)) return result;
  }
  for (auto& array : made) {
    array->base += mipmap->whole.base;
    mipmap->levels.push_back(reinterpret_cast<CUarray>(objects().arrays.add(std::move(array))));
  }
  mipmap->bytes = bytes;
  handle = reinterpret_cast<CUmipmappedArray>(objects().mipmaps.add(std::move(mipmap)));
  return CUDA_SUCCESS;
}

CUresult destroy_mipmap(CUmipmappedArray handle) {
  const Mipmap* mipmap = find_mipmap(handle);
  if (mipmap == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  for (const CUarray level : mipmap->levels) objects().arrays.remove(level);
  give_memory(mipmap->whole);
  objects().mipmaps.remove(handle);
  return CUDA_SUCCESS;
}

// Their memory goes with all memory of the context.
void forget_arrays(const Context& context) {
  objects().mipmaps.remove_if(
      [&](const Mipmap& mipmap) { return mipmap.whole.context == &context; });
  objects().arrays.remove_if([&](const Array& array) { return array.context == &context; });
}

}  // namespace aliquot::simdriver
