// Texture and surface objects over arrays and over linear and pitched memory. A simulated kernel
// does not sample them: they are made, asked and ended as the driver does it.
#include <memory>

#include "simdriver/cuda/array_objects.h"
#include "simdriver/cuda/bodies.h"

using namespace aliquot::simdriver;  // NOLINT(google-build-using-namespace)

namespace {

// CUresourcetype.
constexpr int kArray = 0;
constexpr int kMipmap = 1;
constexpr int kLinear = 2;
constexpr int kPitch = 3;
constexpr unsigned kSurfaceLoadStore = 0x02;  // CUDA_ARRAY3D_SURFACE_LDST

// What a CUtexObject or a CUsurfObject is the address of.
struct View {
  bool surface = false;
  Context* context = nullptr;
  std::uint64_t context_key = 0;
  CUDA_RESOURCE_DESC resource{};
  CUDA_TEXTURE_DESC texture{};
  bool has_part = false;
  CUDA_RESOURCE_VIEW_DESC part{};
};

Registry<View>& views() {
  static auto* const all = new Registry<View>;  // NOLINT(cppcoreguidelines-owning-memory)
  return *all;
}

bool context_lives(const View& view) {
  const Context* context = library().contexts.find(view.context);
  return context != nullptr && context->key == view.context_key;
}

View* find(std::uint64_t handle, bool surface) {
  View* view = views().find(reinterpret_cast<const void*>(handle));
  return view != nullptr && view->surface == surface && context_lives(*view) ? view : nullptr;
}

bool is_device_range(CUdeviceptr address, std::uint64_t bytes) {
  Memory& memory = library().memory();
  return bytes != 0 && memory.find(address) != nullptr &&
         memory.find(address + bytes - 1) != nullptr;
}

CUresult check_resource(const Context& context, const CUDA_RESOURCE_DESC& resource) {
  const auto attribute = [&](int id) {
    return static_cast<std::uint64_t>(context.device->attribute(id));
  };
  switch (resource.type) {
    case kArray:
      return find_array(resource.array) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
    case kMipmap:
      return find_mipmap(resource.mipmap) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
    case kLinear: {
      const auto& linear = resource.linear;
      const std::uint64_t element = element_bytes(linear.format, linear.channels);
      const bool right =
          element != 0 && is_device_range(linear.address, linear.bytes) &&
          linear.address % attribute(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT) == 0 &&
          linear.bytes / element <= attribute(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH);
      return right ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    }
    case kPitch: {
      const auto& pitch = resource.pitch;
      const std::uint64_t element = element_bytes(pitch.format, pitch.channels);
      const bool right =
          element != 0 && is_device_range(pitch.address, pitch.pitch_bytes * pitch.height) &&
          pitch.width * element <= pitch.pitch_bytes &&
          pitch.address % attribute(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT) == 0 &&
          pitch.pitch_bytes % attribute(CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT) == 0 &&
          pitch.width <= attribute(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_WIDTH) &&
          pitch.height <= attribute(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_HEIGHT);
      return right ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    }
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult add(View view, unsigned long long* handle) {
  Context* context = nullptr;
  if (const CUresult result = current_context(context)) return result;
  if (const CUresult result = check_resource(*context, view.resource)) return result;
  views().remove_if([](const View& old) { return !context_lives(old); });
  view.context = context;
  view.context_key = context->key;
  *handle = reinterpret_cast<std::uintptr_t>(views().add(std::make_unique<View>(view)));
  return CUDA_SUCCESS;
}

CUresult destroy(unsigned long long handle, bool surface) {
  const Lock lock = hold();
  if (find(handle, surface) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  views().remove(reinterpret_cast<const void*>(handle));
  return CUDA_SUCCESS;
}

// *out = part(view); INVALID_VALUE where the view has no such part.
template <typename T, typename Part>
CUresult tell(unsigned long long handle, bool surface, T* out, Part part) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  const View* view = find(handle, surface);
  if (view == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const T* found = part(*view);
  if (found == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = *found;
  return CUDA_SUCCESS;
}

const CUDA_RESOURCE_DESC* resource_of(const View& view) { return &view.resource; }

}  // namespace

extern "C" {

CUresult sim_cuTexObjectCreate(CUtexObject* handle, const CUDA_RESOURCE_DESC* resource,
                               const CUDA_TEXTURE_DESC* texture,
                               const CUDA_RESOURCE_VIEW_DESC* part) {
  if (handle == nullptr || resource == nullptr || texture == nullptr) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  // Only of arrays can a part be looked at.
  if (part != nullptr && resource->type != kArray && resource->type != kMipmap) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const Lock lock = hold();
  View view;
  view.resource = *resource;
  view.texture = *texture;
  view.has_part = part != nullptr;
  if (part != nullptr) view.part = *part;
  return add(view, handle);
}
CUresult sim_cuTexObjectDestroy(CUtexObject handle) { return destroy(handle, false); }
CUresult sim_cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC* out, CUtexObject handle) {
  return tell(handle, false, out, resource_of);
}
CUresult sim_cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC* out, CUtexObject handle) {
  return tell(handle, false, out, [](const View& view) { return &view.texture; });
}
CUresult sim_cuTexObjectGetResourceViewDesc(CUDA_RESOURCE_VIEW_DESC* out, CUtexObject handle) {
  return tell(handle, false, out,
              [](const View& view) { return view.has_part ? &view.part : nullptr; });
}

CUresult sim_cuSurfObjectCreate(CUsurfObject* handle, const CUDA_RESOURCE_DESC* resource) {
  if (handle == nullptr || resource == nullptr || resource->type != kArray) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const Lock lock = hold();
  const Array* array = find_array(resource->array);
  if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if ((array->shape.flags & kSurfaceLoadStore) == 0) return CUDA_ERROR_INVALID_VALUE;
  View view;
  view.surface = true;
  view.resource = *resource;
  return add(view, handle);
}
CUresult sim_cuSurfObjectDestroy(CUsurfObject handle) { return destroy(handle, true); }
CUresult sim_cuSurfObjectGetResourceDesc(CUDA_RESOURCE_DESC* out, CUsurfObject handle) {
  return tell(handle, true, out, resource_of);
}

}  // extern "C"
