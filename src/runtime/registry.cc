#include "runtime/registry.h"

#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "runtime/driver.h"

namespace aliquot::runtime {

struct Image {
  const void* data = nullptr;
  CUlibrary library = nullptr;  // nullptr: not loaded yet
  std::vector<std::pair<void**, std::string>> managed;
};

namespace {

struct Named {
  Image* image = nullptr;
  std::string name;
  CUkernel kernel = nullptr;  // nullptr: not asked for yet
};

struct Registry {
  std::mutex mutex;
  std::vector<std::unique_ptr<Image>> images;
  std::map<const void*, Named> kernels;
  std::map<const void*, Named> variables;
};

Registry& registry() {
  static auto* const instance = new Registry;  // NOLINT: used by other files' static destructors
  return *instance;
}

CUresult load(Image& image) {
  if (image.library != nullptr) return CUDA_SUCCESS;
  if (const CUresult entered = enter(); entered != CUDA_SUCCESS) return entered;
  return driver().cuLibraryLoadData(&image.library, image.data, nullptr, nullptr, 0, nullptr,
                                    nullptr, 0);
}

}  // namespace

Image* add_image(const void* data) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  all.images.push_back(std::make_unique<Image>());
  all.images.back()->data = data;
  return all.images.back().get();
}

void remove_image(Image* image) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  const auto is_in_it = [&](const auto& entry) { return entry.second.image == image; };
  std::erase_if(all.kernels, is_in_it);
  std::erase_if(all.variables, is_in_it);
  if (image->library != nullptr) driver().cuLibraryUnload(image->library);
  std::erase_if(all.images, [&](const auto& entry) { return entry.get() == image; });
}

void add_kernel(Image* image, const void* host, std::string name) {
  const std::lock_guard lock(registry().mutex);
  registry().kernels[host] = {image, std::move(name), nullptr};
}

void add_variable(Image* image, const void* host, std::string name) {
  const std::lock_guard lock(registry().mutex);
  registry().variables[host] = {image, std::move(name), nullptr};
}

void add_managed(Image* image, void** place, std::string name) {
  const std::lock_guard lock(registry().mutex);
  image->managed.emplace_back(place, std::move(name));
}

CUresult kernel_at(const void* host, CUkernel& kernel) {
  const std::lock_guard lock(registry().mutex);
  const auto found = registry().kernels.find(host);
  if (found == registry().kernels.end()) return CUDA_ERROR_INVALID_VALUE;
  Named& named = found->second;
  if (named.kernel == nullptr) {
    CUresult result = load(*named.image);
    if (result == CUDA_SUCCESS)
      result = driver().cuLibraryGetKernel(&named.kernel, named.image->library, named.name.c_str());
    if (result != CUDA_SUCCESS) return result;
  }
  kernel = named.kernel;
  return CUDA_SUCCESS;
}

CUresult variable_at(const void* host, CUdeviceptr& address, std::size_t& bytes) {
  const std::lock_guard lock(registry().mutex);
  const auto found = registry().variables.find(host);
  if (found == registry().variables.end()) return CUDA_ERROR_INVALID_VALUE;
  const Named& named = found->second;
  const CUresult result = load(*named.image);
  if (result != CUDA_SUCCESS) return result;
  return driver().cuLibraryGetGlobal(&address, &bytes, named.image->library, named.name.c_str());
}

CUresult place_managed(Image* image) {
  const std::lock_guard lock(registry().mutex);
  if (image->managed.empty()) return CUDA_SUCCESS;
  CUresult result = load(*image);
  for (const auto& [place, name] : image->managed) {
    CUdeviceptr address = 0;
    std::size_t bytes = 0;
    if (result == CUDA_SUCCESS)
      result = driver().cuLibraryGetManaged(&address, &bytes, image->library, name.c_str());
    if (result == CUDA_SUCCESS) *place = reinterpret_cast<void*>(address);
  }
  return result;
}

}  // namespace aliquot::runtime
