// Launches: cuLaunchKernel and its kin.
//
// After a sleep a launch finds none of its code and data in the caches, and that is most of what
// it costs then. So it allocates nothing, checks a shape once, and its functions are marked hot in
// all files: they lie side by side, on 7 pages instead of 18.
#include <cstring>

#include "simdriver/cuda/bodies.h"
#include "simdriver/cuda/call_cost.h"
#include "simdriver/cuda/launch.h"
#include "simdriver/cuda/requests.h"

using namespace aliquot::simdriver;  // NOLINT(google-build-using-namespace)

namespace {

struct Arguments {
  void** params = nullptr;
  void** extra = nullptr;
};

// The arguments' room is the last launch's: a launch allocates nothing. Under the library's lock.
class LentArguments {
 public:
  explicit LentArguments(LaunchOperation& operation) : operation_(operation) {
    operation_.arguments.swap(library().launch_arguments);
  }
  LentArguments(const LentArguments&) = delete;
  LentArguments& operator=(const LentArguments&) = delete;
  ~LentArguments() { operation_.arguments.swap(library().launch_arguments); }

 private:
  LaunchOperation& operation_;
};

[[gnu::hot]] CUresult launch(LaunchOperation operation, CUstream handle,
                             const Arguments& arguments) {
  Lock lock = hold();
  Stream* stream = nullptr;
  if (const CUresult result = resolve_stream(lock, handle, stream)) return result;
  const KernelImage* image = image_of(operation.function);
  if (image == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const LentArguments lent(operation);
  const CUresult packed =
      pack_arguments(*image, arguments.params, arguments.extra, operation.arguments);
  if (packed != CUDA_SUCCESS) return packed;
  if (!is_capturing(*stream)) {
    owe(stream->context->device->info.launch_ns);
    const CUresult refused = refuse_implicit(*stream);
    return refused != CUDA_SUCCESS ? refused : submit_launch(*stream, operation);
  }
  return request(lock, *stream, std::move(operation), Waiting::kNot);
}

// The oldest interface: shape and parameters were set on the function before.
CUresult launch_as_set(CUfunction handle, int width, int height, CUstream stream) {
  LaunchOperation operation;
  operation.function = handle;
  std::vector<std::byte> set;
  {
    const Lock lock = hold();
    const Function* function = loaded_code().functions.find(handle);
    if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (width <= 0 || height <= 0) return CUDA_ERROR_INVALID_VALUE;
    operation.grid[0] = static_cast<unsigned>(width);
    operation.grid[1] = static_cast<unsigned>(height);
    operation.block = std::to_array(function->legacy_block);
    operation.shared_bytes = function->legacy_shared_bytes;
    set = function->legacy_arguments;
  }
  std::size_t bytes = set.size();
  void* extra[] = {reinterpret_cast<void*>(std::uintptr_t{CU_LAUNCH_PARAM_BUFFER_POINTER}),
                   set.data(), reinterpret_cast<void*>(std::uintptr_t{CU_LAUNCH_PARAM_BUFFER_SIZE}),
                   &bytes, nullptr};
  return launch(std::move(operation), stream, {nullptr, extra});
}

CUresult set_argument(CUfunction handle, int offset, const void* value, std::size_t bytes) {
  const Lock lock = hold();
  Function* function = loaded_code().functions.find(handle);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (offset < 0 || offset + bytes > 4096) return CUDA_ERROR_INVALID_VALUE;
  const auto at = static_cast<std::size_t>(offset);
  if (function->legacy_arguments.size() < at + bytes) function->legacy_arguments.resize(at + bytes);
  std::memcpy(function->legacy_arguments.data() + at, value, bytes);
  return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

// NOLINTNEXTLINE(readability-function-size): the driver's own parameters
[[gnu::hot]] CUresult sim_cuLaunchKernel(CUfunction function, unsigned int grid_x,
                                         unsigned int grid_y, unsigned int grid_z,
                                         unsigned int block_x, unsigned int block_y,
                                         unsigned int block_z, unsigned int shared_bytes,
                                         CUstream stream, void** kernel_params, void** extra) {
  return launch({function,
                 {grid_x, grid_y, grid_z},
                 {block_x, block_y, block_z},
                 shared_bytes,
                 false,
                 {},
                 {}},
                stream, {kernel_params, extra});
}

// NOLINTNEXTLINE(readability-function-size): the driver's own parameters
CUresult sim_cuLaunchCooperativeKernel(CUfunction function, unsigned int grid_x,
                                       unsigned int grid_y, unsigned int grid_z,
                                       unsigned int block_x, unsigned int block_y,
                                       unsigned int block_z, unsigned int shared_bytes,
                                       CUstream stream, void** kernel_params) {
  return launch(
      {function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes, true, {}, {}},
      stream, {kernel_params, nullptr});
}

CUresult sim_cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function,
                              void** kernel_params, void** extra) {
  if (config == nullptr || (config->num_attributes != 0 && config->attributes == nullptr)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  LaunchOperation operation;
  operation.function = function;
  operation.grid = {config->grid_x, config->grid_y, config->grid_z};
  operation.block = {config->block_x, config->block_y, config->block_z};
  operation.shared_bytes = config->shared_bytes;
  operation.attributes.assign(config->attributes, config->attributes + config->num_attributes);
  for (const CUlaunchAttribute& attribute : operation.attributes) {
    if (attribute.id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) {
      operation.cooperative = attribute.value.number != 0;
    }
  }
  return launch(std::move(operation), config->stream, {kernel_params, extra});
}

CUresult sim_cuFuncSetBlockShape(CUfunction handle, int x, int y, int z) {
  const Lock lock = hold();
  Function* function = loaded_code().functions.find(handle);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (x <= 0 || y <= 0 || z <= 0) return CUDA_ERROR_INVALID_VALUE;
  function->legacy_block[0] = static_cast<unsigned>(x);
  function->legacy_block[1] = static_cast<unsigned>(y);
  function->legacy_block[2] = static_cast<unsigned>(z);
  return CUDA_SUCCESS;
}

CUresult sim_cuFuncSetSharedSize(CUfunction handle, unsigned int bytes) {
  const Lock lock = hold();
  Function* function = loaded_code().functions.find(handle);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  function->legacy_shared_bytes = bytes;
  return CUDA_SUCCESS;
}

CUresult sim_cuParamSetSize(CUfunction handle, unsigned int bytes) {
  const Lock lock = hold();
  Function* function = loaded_code().functions.find(handle);
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (bytes > 4096) return CUDA_ERROR_INVALID_VALUE;
  function->legacy_arguments.resize(bytes);
  return CUDA_SUCCESS;
}
CUresult sim_cuParamSeti(CUfunction function, int offset, unsigned int value) {
  return set_argument(function, offset, &value, sizeof(value));
}
CUresult sim_cuParamSetf(CUfunction function, int offset, float value) {
  return set_argument(function, offset, &value, sizeof(value));
}
CUresult sim_cuParamSetv(CUfunction function, int offset, void* address, unsigned int bytes) {
  if (address == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return set_argument(function, offset, address, bytes);
}

CUresult sim_cuLaunch(CUfunction function) { return launch_as_set(function, 1, 1, nullptr); }
CUresult sim_cuLaunchGrid(CUfunction function, int width, int height) {
  return launch_as_set(function, width, height, nullptr);
}
CUresult sim_cuLaunchGridAsync(CUfunction function, int width, int height, CUstream stream) {
  return launch_as_set(function, width, height, stream);
}

}  // extern "C"
