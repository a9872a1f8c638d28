// What a CUDA compiler's host code calls: registration of device code, and <<<>>>.
//
// The names and signatures are the compilers' (crt/host_runtime.h of the tool kit says them): nvcc
// pushes a configuration and calls the stub, which pops it and launches by handle
// (__cudaGetKernel, __cudaLaunchKernel: 13.x) or by address (cudaLaunchKernel: before, and clang).
#include <vector>

#include "runtime/driver.h"
#include "runtime/registry.h"

namespace runtime = aliquot::runtime;

namespace {

// What __cudaRegisterFatBinary is given.
struct Wrapper {
  int magic;
  int version;
  const void* data;
  const void* file;
};
constexpr int kWrapperMagic = 0x466243B1;

struct Dim3 {
  unsigned x, y, z;
};

struct Configuration {
  Dim3 grid;
  Dim3 block;
  std::size_t shared;
  CUstream stream;
};

// Nested: the arguments of one launch may launch.
std::vector<Configuration>& configurations() {
  static thread_local std::vector<Configuration> stack;
  return stack;
}

runtime::Image* image_of(void** handle) { return reinterpret_cast<runtime::Image*>(handle); }

CUresult launch(CUkernel kernel, const Configuration& with, void** arguments) {
  return runtime::with_context([&](const runtime::Driver& driver) {
    return driver.cuLaunchKernel(reinterpret_cast<CUfunction>(kernel), with.grid.x, with.grid.y,
                                 with.grid.z, with.block.x, with.block.y, with.block.z,
                                 static_cast<unsigned>(with.shared), with.stream, arguments,
                                 nullptr);
  });
}

}  // namespace

// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)
extern "C" {

void** __cudaRegisterFatBinary(void* wrapper) {
  const auto* given = static_cast<const Wrapper*>(wrapper);
  const bool known = given != nullptr && given->magic == kWrapperMagic;
  return reinterpret_cast<void**>(runtime::add_image(known ? given->data : wrapper));
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void** handle) { runtime::remove_image(image_of(handle)); }

// NOLINTNEXTLINE(readability-function-size): the compilers' signature
void __cudaRegisterFunction(void** handle, const char* host, char*, const char* name, int, void*,
                            void*, void*, void*, int*) {
  runtime::add_kernel(image_of(handle), host, name);
}
// NOLINTNEXTLINE(readability-function-size): the compilers' signature
void __cudaRegisterVar(void** handle, char* host, char*, const char* name, int, std::size_t, int,
                       int) {
  runtime::add_variable(image_of(handle), host, name);
}
// NOLINTNEXTLINE(readability-function-size): the compilers' signature
void __cudaRegisterManagedVar(void** handle, void** place, char*, const char* name, int,
                              std::size_t, int, int) {
  runtime::add_managed(image_of(handle), place, name);
}
char __cudaInitModule(void** handle) {
  return runtime::noted(runtime::place_managed(image_of(handle))) == CUDA_SUCCESS ? 1 : 0;
}

unsigned __cudaPushCallConfiguration(Dim3 grid, Dim3 block, std::size_t shared, CUstream stream) {
  configurations().push_back({grid, block, shared, stream});
  return 0;
}
CUresult __cudaPopCallConfiguration(Dim3* grid, Dim3* block, std::size_t* shared, void* stream) {
  if (configurations().empty()) return runtime::noted(CUDA_ERROR_INVALID_VALUE);
  const Configuration top = configurations().back();
  configurations().pop_back();
  *grid = top.grid;
  *block = top.block;
  *shared = top.shared;
  *static_cast<CUstream*>(stream) = top.stream;
  return CUDA_SUCCESS;
}

CUresult __cudaGetKernel(CUkernel* kernel, const void* host) {
  return runtime::noted(runtime::kernel_at(host, *kernel));
}
CUresult __cudaLaunchKernel(CUkernel kernel, Dim3 grid, Dim3 block, void** arguments,
                            std::size_t shared, CUstream stream) {
  return launch(kernel, {grid, block, shared, stream}, arguments);
}
CUresult cudaLaunchKernel(const void* host, Dim3 grid, Dim3 block, void** arguments,
                          std::size_t shared, CUstream stream) {
  CUkernel kernel = nullptr;
  const CUresult found = __cudaGetKernel(&kernel, host);
  return found == CUDA_SUCCESS ? launch(kernel, {grid, block, shared, stream}, arguments) : found;
}

CUresult cudaGetSymbolAddress(void** address, const void* host) {
  CUdeviceptr found = 0;
  std::size_t bytes = 0;
  const CUresult result = runtime::noted(runtime::variable_at(host, found, bytes));
  if (result == CUDA_SUCCESS) *address = reinterpret_cast<void*>(found);
  return result;
}

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)
