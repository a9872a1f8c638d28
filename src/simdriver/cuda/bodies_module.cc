// Modules, libraries and the linker: how code gets in.
#include <algorithm>
#include <cstring>

#include "common/files.h"
#include "simdriver/cuda/binary_image.h"
#include "simdriver/cuda/bodies.h"
#include "simdriver/cuda/jit_options.h"
#include "simdriver/cuda/modules.h"

using namespace aliquot::simdriver;  // NOLINT(google-build-using-namespace)

namespace {

using ImagePointer = std::shared_ptr<const CodeImage>;

CUresult read_file_image(const char* path, ImagePointer& image, std::string& log) {
  const auto bytes = aliquot::read_file(path);
  if (!bytes) return CUDA_ERROR_FILE_NOT_FOUND;
  return read_image_bytes(*bytes, image, log);
}

CUresult load(CUmodule* handle, const ImagePointer& image) {
  const Lock lock = hold();
  Context* context = nullptr;
  if (const CUresult result = current_context(context)) return result;
  Module* module = nullptr;
  if (const CUresult result = load_module(*context, image, module)) return result;
  *handle = reinterpret_cast<CUmodule>(module);
  return CUDA_SUCCESS;
}

CUresult add_library(CUlibrary* handle, const ImagePointer& image) {
  const Lock lock = hold();
  auto code = std::make_unique<CodeLibrary>();
  code->image = image;
  for (const KernelImage& kernel : image->kernels) {
    auto made = std::make_unique<Kernel>();
    made->library = code.get();
    made->image = &kernel;
    code->kernels[kernel.name] = loaded_code().kernels.add(std::move(made));
  }
  *handle = reinterpret_cast<CUlibrary>(loaded_code().libraries.add(std::move(code)));
  return CUDA_SUCCESS;
}

CUresult find_variable(CUlibrary handle, const char* name, Variable& variable) {
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  CodeLibrary* code = loaded_code().libraries.find(handle);
  if (code == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  Context* context = nullptr;
  if (const CUresult result = current_context(context)) return result;
  Module* module = nullptr;
  if (const CUresult result = module_of(*code, *context, module)) return result;
  const auto found = module->variables.find(name);
  if (found == module->variables.end()) return CUDA_ERROR_NOT_FOUND;
  variable = found->second;
  return CUDA_SUCCESS;
}

template <typename Handle, typename Map>
void enumerate(Handle* out, unsigned most, const Map& all) {
  unsigned i = 0;
  for (const auto& [name, object] : all) {
    if (i == most) break;
    out[i++] = reinterpret_cast<Handle>(object);
  }
}

}  // namespace

extern "C" {

CUresult sim_cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned int num_options,
                                CUjit_option* options, void** option_values) {
  if (module == nullptr || image == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const JitOptions jit(num_options, options, option_values);
  ImagePointer read;
  std::string log;
  const CUresult result = read_image(image, jit.register_limit(), read, log);
  jit.report(log);
  return result != CUDA_SUCCESS ? result : load(module, read);
}
CUresult sim_cuModuleLoadData(CUmodule* module, const void* image) {
  return sim_cuModuleLoadDataEx(module, image, 0, nullptr, nullptr);
}
CUresult sim_cuModuleLoadFatBinary(CUmodule* module, const void* image) {
  return sim_cuModuleLoadDataEx(module, image, 0, nullptr, nullptr);
}
CUresult sim_cuModuleLoad(CUmodule* module, const char* path) {
  if (module == nullptr || path == nullptr) return CUDA_ERROR_INVALID_VALUE;
  ImagePointer read;
  std::string log;
  const CUresult result = read_file_image(path, read, log);
  return result != CUDA_SUCCESS ? result : load(module, read);
}

CUresult sim_cuModuleUnload(CUmodule handle) {
  const Lock lock = hold();
  Module* module = loaded_code().modules.find(handle);
  if (module == nullptr || module->of_library) return CUDA_ERROR_INVALID_HANDLE;
  unload_module(*module);
  return CUDA_SUCCESS;
}

CUresult sim_cuModuleGetFunction(CUfunction* function, CUmodule handle, const char* name) {
  if (function == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  Module* module = loaded_code().modules.find(handle);
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  Function* found = function_of(*module, name);
  if (found == nullptr) return CUDA_ERROR_NOT_FOUND;
  *function = reinterpret_cast<CUfunction>(found);
  return CUDA_SUCCESS;
}

CUresult sim_cuModuleGetFunctionCount(unsigned int* count, CUmodule handle) {
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  const Module* module = loaded_code().modules.find(handle);
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *count = static_cast<unsigned>(module->functions.size());
  return CUDA_SUCCESS;
}

CUresult sim_cuModuleEnumerateFunctions(CUfunction* functions, unsigned int num_functions,
                                        CUmodule handle) {
  if (functions == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  const Module* module = loaded_code().modules.find(handle);
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  enumerate(functions, num_functions, module->functions);
  return CUDA_SUCCESS;
}

CUresult sim_cuModuleGetGlobal_v2(CUdeviceptr* address, size_t* bytes, CUmodule handle,
                                  const char* name) {
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  const Module* module = loaded_code().modules.find(handle);
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const auto found = module->variables.find(name);
  if (found == module->variables.end()) return CUDA_ERROR_NOT_FOUND;
  if (address != nullptr) *address = found->second.address;
  if (bytes != nullptr) *bytes = found->second.bytes;
  return CUDA_SUCCESS;
}

CUresult sim_cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
  if (mode == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *mode = CU_MODULE_LAZY_LOADING;
  return CUDA_SUCCESS;
}

// NOLINTNEXTLINE(readability-function-size): the driver's own parameters
CUresult sim_cuLibraryLoadData(CUlibrary* handle, const void* code, CUjit_option* jit_options,
                               void** jit_values, unsigned int num_jit, CUlibraryOption*, void**,
                               unsigned int) {
  if (handle == nullptr || code == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const JitOptions jit(num_jit, jit_options, jit_values);
  ImagePointer read;
  std::string log;
  const CUresult result = read_image(code, jit.register_limit(), read, log);
  jit.report(log);
  return result != CUDA_SUCCESS ? result : add_library(handle, read);
}

// NOLINTNEXTLINE(readability-function-size): the driver's own parameters
CUresult sim_cuLibraryLoadFromFile(CUlibrary* handle, const char* file_name,
                                   CUjit_option* jit_options, void** jit_values,
                                   unsigned int num_jit, CUlibraryOption*, void**, unsigned int) {
  if (handle == nullptr || file_name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const JitOptions jit(num_jit, jit_options, jit_values);
  ImagePointer read;
  std::string log;
  const CUresult result = read_file_image(file_name, read, log);
  jit.report(log);
  return result != CUDA_SUCCESS ? result : add_library(handle, read);
}

CUresult sim_cuLibraryUnload(CUlibrary handle) {
  const Lock lock = hold();
  CodeLibrary* code = loaded_code().libraries.find(handle);
  if (code == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  while (!code->modules.empty()) unload_module(*code->modules.begin()->second);
  for (const auto& [name, kernel] : code->kernels) loaded_code().kernels.remove(kernel);
  loaded_code().libraries.remove(handle);
  return CUDA_SUCCESS;
}

CUresult sim_cuLibraryGetKernel(CUkernel* kernel, CUlibrary handle, const char* name) {
  if (kernel == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  const CodeLibrary* code = loaded_code().libraries.find(handle);
  if (code == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const auto found = code->kernels.find(name);
  if (found == code->kernels.end()) return CUDA_ERROR_NOT_FOUND;
  *kernel = reinterpret_cast<CUkernel>(found->second);
  return CUDA_SUCCESS;
}

CUresult sim_cuLibraryGetKernelCount(unsigned int* count, CUlibrary handle) {
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  const CodeLibrary* code = loaded_code().libraries.find(handle);
  if (code == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *count = static_cast<unsigned>(code->kernels.size());
  return CUDA_SUCCESS;
}

CUresult sim_cuLibraryEnumerateKernels(CUkernel* kernels, unsigned int num_kernels,
                                       CUlibrary handle) {
  if (kernels == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  const CodeLibrary* code = loaded_code().libraries.find(handle);
  if (code == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  enumerate(kernels, num_kernels, code->kernels);
  return CUDA_SUCCESS;
}

CUresult sim_cuLibraryGetModule(CUmodule* handle, CUlibrary library_handle) {
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  CodeLibrary* code = loaded_code().libraries.find(library_handle);
  if (code == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  Context* context = nullptr;
  if (const CUresult result = current_context(context)) return result;
  Module* module = nullptr;
  if (const CUresult result = module_of(*code, *context, module)) return result;
  *handle = reinterpret_cast<CUmodule>(module);
  return CUDA_SUCCESS;
}

CUresult sim_cuLibraryGetGlobal(CUdeviceptr* address, size_t* bytes, CUlibrary handle,
                                const char* name) {
  Variable variable;
  if (const CUresult result = find_variable(handle, name, variable)) return result;
  if (address != nullptr) *address = variable.address;
  if (bytes != nullptr) *bytes = variable.bytes;
  return CUDA_SUCCESS;
}

CUresult sim_cuLibraryGetManaged(CUdeviceptr* address, size_t* bytes, CUlibrary handle,
                                 const char* name) {
  Variable variable;
  if (const CUresult result = find_variable(handle, name, variable)) return result;
  if (!variable.managed) return CUDA_ERROR_NOT_FOUND;
  if (address != nullptr) *address = variable.address;
  if (bytes != nullptr) *bytes = variable.bytes;
  return CUDA_SUCCESS;
}

CUresult sim_cuLibraryGetUnifiedFunction(void**, CUlibrary, const char*) {
  return CUDA_ERROR_NOT_FOUND;
}

}  // extern "C"
