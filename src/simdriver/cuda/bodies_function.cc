// Functions and kernels: what they need, and how many of their blocks fit.
#include <algorithm>

#include "simdriver/cuda/bodies.h"
#include "simdriver/cuda/launch.h"
#include "simdriver/cuda/modules.h"

using namespace aliquot::simdriver;  // NOLINT(google-build-using-namespace)

namespace {

CUresult attribute_of(const CodeImage& code, const KernelImage& kernel, const DeviceView& device,
                      CUfunction_attribute attribute, int& value) {
  const auto capability = [&] {
    return device.attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) * 10 +
           device.attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  };
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      value = static_cast<int>(kernel.max_threads);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
      value = static_cast<int>(kernel.shared_bytes);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
      value = static_cast<int>(code.constant_bytes);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
      value = static_cast<int>(kernel.local_bytes);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      value = static_cast<int>(kernel.registers);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
      value = code.target;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      value = code.ptx_version != 0 ? capability() : code.target;
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      value = 49152 - static_cast<int>(std::min(kernel.shared_bytes, 49152u));
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      value = -1;
      return CUDA_SUCCESS;
    default:
      value = 0;
      return attribute > 0 && attribute <= CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE
                 ? CUDA_SUCCESS
                 : CUDA_ERROR_INVALID_VALUE;
  }
}

// What may be set, and to what.
CUresult check_setting(const KernelImage& kernel, const DeviceView& device,
                       CUfunction_attribute attribute, int value) {
  if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
    const int most = device.attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN) -
                     static_cast<int>(kernel.shared_bytes);
    return value < 0 || value > most ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
  }
  if (attribute == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT) {
    return value < -1 || value > 100 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
  }
  const bool settable = attribute >= CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET &&
                        attribute <= CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE;
  return settable ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult find(CUfunction handle, Function*& function) {
  function = loaded_code().functions.find(handle);
  if (function != nullptr) return CUDA_SUCCESS;
  Context* context = nullptr;
  if (const CUresult result = current_context(context)) return result;
  return resolve_function(handle, *context, function);
}

CUresult parameter_of(const KernelImage& kernel, size_t index, size_t* offset, size_t* size) {
  if (offset == nullptr || index >= kernel.parameters.size()) return CUDA_ERROR_INVALID_VALUE;
  *offset = kernel.parameters[index].offset;
  if (size != nullptr) *size = kernel.parameters[index].bytes;
  return CUDA_SUCCESS;
}

// The block size with the most resident threads.
struct BestBlock {
  int threads = 0;
  int blocks = 0;
};
BestBlock best_block(const Function& function, CUoccupancyB2DSize shared_for, size_t shared,
                     int limit) {
  const DeviceView& device = *function.module->context->device;
  int most = static_cast<int>(function.image->max_threads);
  if (limit > 0) most = std::min(most, limit);
  BestBlock best;
  for (int threads = most / 32 * 32; threads >= 32; threads -= 32) {
    const size_t dynamic = shared_for != nullptr ? shared_for(threads) : shared;
    const int blocks = blocks_per_multiprocessor(device, *function.image, threads, dynamic);
    if (blocks * threads > best.blocks * best.threads) best = {threads, blocks};
  }
  return best;
}

CUresult occupancy(int* num_blocks, CUfunction handle, int block_size, size_t shared) {
  if (num_blocks == nullptr || block_size <= 0) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  Function* function = nullptr;
  if (const CUresult result = find(handle, function)) return result;
  const bool fits = block_size <= static_cast<int>(function->image->max_threads);
  *num_blocks = fits ? blocks_per_multiprocessor(*function->module->context->device,
                                                 *function->image, block_size, shared)
                     : 0;
  return CUDA_SUCCESS;
}

CUresult potential(int* min_grid_size, int* block_size, CUfunction handle,
                   CUoccupancyB2DSize shared_for, size_t shared, int limit) {
  if (min_grid_size == nullptr || block_size == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  Function* function = nullptr;
  if (const CUresult result = find(handle, function)) return result;
  const BestBlock best = best_block(*function, shared_for, shared, limit);
  *block_size = best.threads;
  *min_grid_size = best.blocks * function->module->context->device->attribute(
                                     CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

CUresult sim_cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction handle) {
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  Function* function = nullptr;
  if (const CUresult result = find(handle, function)) return result;
  const auto set = function->attributes.find(attribute);
  if (set != function->attributes.end()) {
    *value = set->second;
    return CUDA_SUCCESS;
  }
  return attribute_of(*function->module->image, *function->image,
                      *function->module->context->device, attribute, *value);
}

CUresult sim_cuFuncSetAttribute(CUfunction handle, CUfunction_attribute attribute, int value) {
  const Lock lock = hold();
  Function* function = nullptr;
  if (const CUresult result = find(handle, function)) return result;
  const CUresult result =
      check_setting(*function->image, *function->module->context->device, attribute, value);
  if (result != CUDA_SUCCESS) return result;
  function->attributes[attribute] = value;
  if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
    function->max_dynamic_shared_bytes = value;
  }
  return CUDA_SUCCESS;
}

CUresult sim_cuFuncSetCacheConfig(CUfunction handle, CUfunc_cache) {
  const Lock lock = hold();
  Function* function = nullptr;
  return find(handle, function);
}
CUresult sim_cuFuncSetSharedMemConfig(CUfunction handle, CUsharedconfig) {
  const Lock lock = hold();
  Function* function = nullptr;
  return find(handle, function);
}

CUresult sim_cuFuncGetModule(CUmodule* module, CUfunction handle) {
  if (module == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  Function* function = nullptr;
  if (const CUresult result = find(handle, function)) return result;
  *module = reinterpret_cast<CUmodule>(function->module);
  return CUDA_SUCCESS;
}

CUresult sim_cuFuncGetName(const char** name, CUfunction handle) {
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  const KernelImage* image = image_of(handle);
  if (image == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *name = image->name.c_str();
  return CUDA_SUCCESS;
}

CUresult sim_cuFuncGetParamInfo(CUfunction handle, size_t index, size_t* offset, size_t* size) {
  const Lock lock = hold();
  const KernelImage* image = image_of(handle);
  return image == nullptr ? CUDA_ERROR_INVALID_HANDLE : parameter_of(*image, index, offset, size);
}
CUresult sim_cuFuncGetParamCount(CUfunction handle, size_t* count) {
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  const KernelImage* image = image_of(handle);
  if (image == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *count = image->parameters.size();
  return CUDA_SUCCESS;
}

CUresult sim_cuFuncIsLoaded(CUfunctionLoadingState* state, CUfunction handle) {
  if (state == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  if (image_of(handle) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *state = CU_FUNCTION_LOADING_STATE_LOADED;
  return CUDA_SUCCESS;
}
CUresult sim_cuFuncLoad(CUfunction handle) {
  const Lock lock = hold();
  Function* function = nullptr;
  return find(handle, function);
}

CUresult sim_cuKernelGetFunction(CUfunction* out, CUkernel handle) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  if (loaded_code().kernels.find(handle) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  Context* context = nullptr;
  if (const CUresult result = current_context(context)) return result;
  Function* function = nullptr;
  const CUresult result =
      resolve_function(reinterpret_cast<CUfunction>(handle), *context, function);
  if (result == CUDA_SUCCESS) *out = reinterpret_cast<CUfunction>(function);
  return result;
}

CUresult sim_cuKernelGetLibrary(CUlibrary* out, CUkernel handle) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  const Kernel* kernel = loaded_code().kernels.find(handle);
  if (kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *out = reinterpret_cast<CUlibrary>(kernel->library);
  return CUDA_SUCCESS;
}

CUresult sim_cuKernelGetName(const char** name, CUkernel handle) {
  return sim_cuFuncGetName(name, reinterpret_cast<CUfunction>(handle));
}
CUresult sim_cuKernelGetParamInfo(CUkernel handle, size_t index, size_t* offset, size_t* size) {
  return sim_cuFuncGetParamInfo(reinterpret_cast<CUfunction>(handle), index, offset, size);
}
CUresult sim_cuKernelGetParamCount(CUkernel handle, size_t* count) {
  return sim_cuFuncGetParamCount(reinterpret_cast<CUfunction>(handle), count);
}

CUresult sim_cuKernelGetAttribute(int* value, CUfunction_attribute attribute, CUkernel handle,
                                  CUdevice ordinal) {
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  const Kernel* kernel = loaded_code().kernels.find(handle);
  if (kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const DeviceView* device = library().device(ordinal);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  const auto set = kernel->attributes.find({attribute, ordinal});
  if (set != kernel->attributes.end()) {
    *value = set->second;
    return CUDA_SUCCESS;
  }
  return attribute_of(*kernel->library->image, *kernel->image, *device, attribute, *value);
}

CUresult sim_cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel handle,
                                  CUdevice ordinal) {
  const Lock lock = hold();
  Kernel* kernel = loaded_code().kernels.find(handle);
  if (kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const DeviceView* device = library().device(ordinal);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  if (const CUresult result = check_setting(*kernel->image, *device, attribute, value)) {
    return result;
  }
  kernel->attributes[{attribute, ordinal}] = value;
  for (const auto& [context, module] : kernel->library->modules) {
    Function* function = function_of(*module, kernel->image->name);
    if (context->device != device || function == nullptr) continue;
    function->attributes[attribute] = value;
    if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
      function->max_dynamic_shared_bytes = value;
    }
  }
  return CUDA_SUCCESS;
}

CUresult sim_cuKernelSetCacheConfig(CUkernel handle, CUfunc_cache, CUdevice ordinal) {
  const Lock lock = hold();
  if (loaded_code().kernels.find(handle) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return library().device(ordinal) == nullptr ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

CUresult sim_cuOccupancyMaxActiveBlocksPerMultiprocessor(int* num_blocks, CUfunction function,
                                                         int block_size, size_t shared) {
  return occupancy(num_blocks, function, block_size, shared);
}
CUresult sim_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* num_blocks,
                                                                  CUfunction function,
                                                                  int block_size, size_t shared,
                                                                  unsigned int) {
  return occupancy(num_blocks, function, block_size, shared);
}
CUresult sim_cuOccupancyMaxPotentialBlockSize(int* min_grid_size, int* block_size,
                                              CUfunction function, CUoccupancyB2DSize shared_for,
                                              size_t shared, int limit) {
  return potential(min_grid_size, block_size, function, shared_for, shared, limit);
}
// NOLINTNEXTLINE(readability-function-size): the driver's own parameters
CUresult sim_cuOccupancyMaxPotentialBlockSizeWithFlags(int* min_grid_size, int* block_size,
                                                       CUfunction function,
                                                       CUoccupancyB2DSize shared_for, size_t shared,
                                                       int limit, unsigned int) {
  return potential(min_grid_size, block_size, function, shared_for, shared, limit);
}

CUresult sim_cuOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, CUfunction handle,
                                                     int num_blocks, int block_size) {
  if (bytes == nullptr || num_blocks <= 0 || block_size <= 0) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock = hold();
  Function* function = nullptr;
  if (const CUresult result = find(handle, function)) return result;
  const DeviceView& device = *function->module->context->device;
  const int all = device.attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
  const int reserved = device.attribute(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);
  const int left = all / num_blocks - reserved - static_cast<int>(function->image->shared_bytes);
  const int most = device.attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  *bytes = static_cast<size_t>(std::clamp(left, 0, most));
  return CUDA_SUCCESS;
}

}  // extern "C"
