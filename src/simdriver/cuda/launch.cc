#include "simdriver/cuda/launch.h"

#include <algorithm>
#include <cstring>

#include "simdriver/cuda/builtin_kernels.h"

namespace aliquot::simdriver {
namespace {

using Box3 = std::array<unsigned, 3>;

std::uint64_t volume(const Box3& box) {
  return static_cast<std::uint64_t>(box[0]) * box[1] * box[2];
}

bool within(const DeviceView& device, const Box3& box, int first_attribute) {
  for (int i = 0; i < 3; ++i) {
    const unsigned size = box[static_cast<std::size_t>(i)];
    if (size == 0 || size > static_cast<unsigned>(device.attribute(first_attribute + i))) {
      return false;
    }
  }
  return true;
}

CUresult check_limits(const Function& function, const CheckedLaunch& launch, int& resident) {
  const DeviceView& device = *function.module->context->device;
  if (!within(device, launch.block, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X) ||
      !within(device, launch.grid, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const std::uint64_t threads = volume(launch.block);
  if (threads > 1024) return CUDA_ERROR_INVALID_VALUE;
  const KernelImage& kernel = *function.image;
  if (kernel.required_threads != 0 && threads != kernel.required_threads) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (threads > kernel.max_threads) return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  if (launch.shared_bytes > static_cast<unsigned>(launch.shared_limit)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  resident =
      blocks_per_multiprocessor(device, kernel, static_cast<int>(threads), launch.shared_bytes);
  if (resident == 0) return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  const auto room =
      static_cast<std::uint64_t>(resident) *
      static_cast<std::uint64_t>(device.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
  if (launch.cooperative && volume(launch.grid) > room) {
    return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
  }
  return CUDA_SUCCESS;
}

}  // namespace

[[gnu::hot]] CUresult pack_arguments(const KernelImage& kernel, void** kernel_params, void** extra,
                                     std::vector<std::byte>& packed) {
  packed.assign(kernel.parameter_bytes, std::byte{0});
  if (kernel_params != nullptr) {
    if (extra != nullptr) return CUDA_ERROR_INVALID_VALUE;
    for (std::size_t i = 0; i < kernel.parameters.size(); ++i) {
      const KernelParameter& parameter = kernel.parameters[i];
      if (kernel_params[i] == nullptr) return CUDA_ERROR_INVALID_VALUE;
      std::memcpy(packed.data() + parameter.offset, kernel_params[i], parameter.bytes);
    }
    return CUDA_SUCCESS;
  }
  const void* buffer = nullptr;
  std::size_t bytes = 0;
  for (void** option = extra; option != nullptr && *option != nullptr; option += 2) {
    const auto which = reinterpret_cast<std::uintptr_t>(option[0]);
    if (which == CU_LAUNCH_PARAM_BUFFER_POINTER) {
      buffer = option[1];
    } else if (which == CU_LAUNCH_PARAM_BUFFER_SIZE) {
      std::memcpy(&bytes, option[1], sizeof(bytes));
    } else {
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  if (buffer != nullptr) std::memcpy(packed.data(), buffer, std::min(bytes, packed.size()));
  return CUDA_SUCCESS;
}

[[gnu::hot]] CUresult check_launch(Function& function, const LaunchOperation& operation,
                                   int& resident) {
  const CheckedLaunch launch{operation.grid, operation.block, operation.shared_bytes,
                             function.max_dynamic_shared_bytes, operation.cooperative};
  if (function.resident_blocks == 0 || launch != function.checked) {
    if (const CUresult result = check_limits(function, launch, resident)) return result;
    function.checked = launch;
    function.resident_blocks = resident;
  }
  resident = function.resident_blocks;
  return CUDA_SUCCESS;
}

[[gnu::hot]] CUresult submit_launch(Stream& stream, const LaunchOperation& operation) {
  Function* function = nullptr;
  if (const CUresult result = resolve_function(operation.function, *stream.context, function)) {
    return result;
  }
  int resident = 0;
  if (const CUresult result = check_launch(*function, operation, resident)) return result;
  const auto blocks_per_sm = static_cast<std::uint64_t>(std::min(resident, 64));
  const BuiltinKernel* builtin = builtin_kernel(function->image->name);
  if (builtin == nullptr) {
    return submit(stream, CommandOp::kLaunch,
                  {volume(operation.grid), blocks_per_sm, function->block_ns});
  }
  const BuiltinCall call{operation.arguments};
  const CommandArgs work = {builtin->blocks(call, volume(operation.grid)), blocks_per_sm,
                            builtin->block_ns(call)};
  if (builtin->compute == nullptr) return submit(stream, CommandOp::kLaunch, work);
  return submit(stream, CommandOp::kLaunch, work, [builtin, arguments = operation.arguments] {
    return builtin->compute({arguments});
  });
}

}  // namespace aliquot::simdriver
