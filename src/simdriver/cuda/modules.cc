#include "simdriver/cuda/modules.h"

#include <algorithm>
#include <cstring>

#include "simdriver/cuda/allocate.h"
#include "simdriver/cuda/binary_image.h"
#include "simdriver/cuda/ptx.h"

namespace aliquot::simdriver {
namespace {

// The newest PTX that each driver reads (PTX ISA, release notes).
int newest_ptx(int cuda_version) {
  constexpr std::pair<int, int> kByDriver[] = {{11080, 78}, {12000, 80}, {12040, 84}, {12080, 87},
                                               {12090, 88}, {13000, 90}, {13010, 91}};
  int newest = kByDriver[0].second;
  for (const auto& [driver, ptx] : kByDriver) {
    if (driver <= cuda_version) newest = ptx;
  }
  return newest;
}

int capability_of(const DeviceView& device) {
  return device.attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) * 10 +
         device.attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
}

CUresult fits_device(const CodeImage& image, const DeviceView& device) {
  if (image.ptx_version > newest_ptx(library().cuda_version())) {
    return CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
  }
  if (image.target <= capability_of(device)) return CUDA_SUCCESS;
  return image.ptx_version != 0 ? CUDA_ERROR_INVALID_PTX : CUDA_ERROR_NO_BINARY_FOR_GPU;
}

// Device memory for so much code: a granule of it lies in what the context took anyway.
std::uint64_t memory_of_code(std::uint64_t bytes) {
  const std::uint64_t granules = (bytes + kGranuleBytes - 1) / kGranuleBytes;
  return granules <= 1 ? 0 : (granules - 1) * kGranuleBytes;
}

// The context's modules hold so much code from now on.
CUresult hold_code(Context& context, std::uint64_t bytes) {
  const std::uint64_t before = memory_of_code(context.code_bytes);
  const std::uint64_t after = memory_of_code(bytes);
  const auto ask = [&](Op op, std::uint64_t change) {
    return library().ask(op, MemoryRequest{context.device->server, MemoryKind::kModule, change});
  };
  if (after > before) {
    if (const CUresult result = ask(Op::kMemoryTake, after - before)) return result;
  } else if (after < before) {
    ask(Op::kMemoryGive, before - after);
  }
  context.code_bytes = bytes;
  return CUDA_SUCCESS;
}

CUresult place_variable(Context& context, const VariableImage& image, Variable& placed) {
  placed.bytes = image.bytes;
  placed.managed = image.managed;
  const std::uint64_t bytes = std::max<std::uint64_t>(image.bytes, 1);
  const CUresult result = image.managed ? allocate_managed(context, bytes, placed.address)
                                        : allocate_linear(context, bytes, placed.address);
  if (result != CUDA_SUCCESS) return result;
  Memory& memory = library().memory();
  const CUresult cleared = memory.fill(placed.address, bytes, {0, 1});
  if (cleared != CUDA_SUCCESS || image.initial.empty()) return cleared;
  return memory.store(placed.address, image.initial.data(),
                      std::min<std::uint64_t>(image.initial.size(), bytes));
}

}  // namespace

[[gnu::hot]] LoadedCode& loaded_code() {
  static LoadedCode* const instance = new LoadedCode;  // NOLINT(cppcoreguidelines-owning-memory)
  return *instance;
}

CUresult read_image_bytes(std::string_view bytes, std::shared_ptr<const CodeImage>& read,
                          std::string& log) {
  const bool binary = is_binary_image(bytes);
  Result<CodeImage> image = binary ? read_binary_image(bytes) : read_ptx(bytes);
  if (image) {
    read = std::make_shared<const CodeImage>(std::move(*image));
    return CUDA_SUCCESS;
  }
  log = image.error().message;
  if (!binary) log = "ptxas application ptx input, " + log;
  say(Say::kDebug, "an image does not load: %s", log.c_str());
  return binary ? CUDA_ERROR_INVALID_IMAGE : CUDA_ERROR_INVALID_PTX;
}

CUresult read_image(const void* image, const std::string& appendix,
                    std::shared_ptr<const CodeImage>& read, std::string& log) {
  if (const std::size_t size = binary_image_bytes(image)) {
    return read_image_bytes({static_cast<const char*>(image_data(image)), size}, read, log);
  }
  return read_image_bytes(static_cast<const char*>(image) + appendix, read, log);
}

CUresult load_module(Context& context, std::shared_ptr<const CodeImage> image, Module*& module) {
  if (const CUresult result = fits_device(*image, *context.device)) return result;
  if (const CUresult result = hold_code(context, context.code_bytes + image->code_bytes))
    return result;
  auto made = std::make_unique<Module>();
  made->context = &context;
  made->image = std::move(image);
  CUresult result = CUDA_SUCCESS;
  for (const VariableImage& variable : made->image->variables) {
    result = place_variable(context, variable, made->variables[variable.name]);
    if (result != CUDA_SUCCESS) break;
  }
  for (const KernelImage& kernel : made->image->kernels) {
    auto function = std::make_unique<Function>();
    function->module = made.get();
    function->image = &kernel;
    if (result == CUDA_SUCCESS) result = library().time_of_kernel(kernel.name, function->block_ns);
    made->functions[kernel.name] = loaded_code().functions.add(std::move(function));
  }
  module = loaded_code().modules.add(std::move(made));
  if (result != CUDA_SUCCESS) unload_module(*module);
  return result;
}

void unload_module(Module& module) {
  for (const auto& [name, variable] : module.variables) {
    if (Allocation* allocation = library().memory().find(variable.address)) {
      free_allocation(*allocation);
    }
  }
  hold_code(*module.context, module.context->code_bytes - module.image->code_bytes);
  for (const auto& [name, function] : module.functions) loaded_code().functions.remove(function);
  loaded_code().libraries.for_each([&](CodeLibrary& code) {
    std::erase_if(code.modules, [&](const auto& entry) { return entry.second == &module; });
  });
  loaded_code().modules.remove(&module);
}

void free_modules(Context& context) {
  std::vector<Module*> mine;
  loaded_code().modules.for_each([&](Module& module) {
    if (module.context == &context) mine.push_back(&module);
  });
  for (Module* module : mine) unload_module(*module);
}

Function* function_of(Module& module, const std::string& name) {
  const auto found = module.functions.find(name);
  return found == module.functions.end() ? nullptr : found->second;
}

CUresult module_of(CodeLibrary& code, Context& context, Module*& module) {
  const auto found = code.modules.find(&context);
  if (found != code.modules.end()) {
    module = found->second;
    return CUDA_SUCCESS;
  }
  if (const CUresult result = load_module(context, code.image, module)) return result;
  module->of_library = true;
  code.modules[&context] = module;
  return CUDA_SUCCESS;
}

[[gnu::hot]] CUresult resolve_function(CUfunction handle, Context& context, Function*& function) {
  function = loaded_code().functions.find(handle);
  if (function != nullptr) return CUDA_SUCCESS;
  Kernel* kernel = loaded_code().kernels.find(handle);
  if (kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  Module* module = nullptr;
  if (const CUresult result = module_of(*kernel->library, context, module)) return result;
  function = function_of(*module, kernel->image->name);
  return function == nullptr ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
}

[[gnu::hot]] const KernelImage* image_of(const void* handle) {
  if (const Function* function = loaded_code().functions.find(handle)) return function->image;
  if (const Kernel* kernel = loaded_code().kernels.find(handle)) return kernel->image;
  return nullptr;
}

int blocks_per_multiprocessor(const DeviceView& device, const KernelImage& kernel, int threads,
                              std::uint64_t dynamic_shared_bytes) {
  constexpr int kWarp = 32;
  // Registers come in units of 256 a warp.
  constexpr int kRegisterUnit = 256;
  const int warps = (threads + kWarp - 1) / kWarp;
  const int registers_a_warp = (static_cast<int>(kernel.registers) * kWarp + kRegisterUnit - 1) /
                               kRegisterUnit * kRegisterUnit;
  const std::uint64_t shared = kernel.shared_bytes + dynamic_shared_bytes +
                               static_cast<std::uint64_t>(device.attribute(
                                   CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK));
  int blocks = device.attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
  blocks = std::min(
      blocks, device.attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR) / kWarp / warps);
  if (registers_a_warp > 0) {
    blocks =
        std::min(blocks, device.attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR) /
                             (registers_a_warp * warps));
  }
  const auto all_shared = static_cast<std::uint64_t>(
      device.attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR));
  if (shared > 0) blocks = static_cast<int>(std::min<std::uint64_t>(blocks, all_shared / shared));
  return blocks;
}

}  // namespace aliquot::simdriver
