#include "runtime/driver.h"

#include <dlfcn.h>

#include <cstdio>
#include <map>
#include <mutex>

namespace aliquot::runtime {
namespace {

// cudaErrorInsufficientDriver, which is no number of the driver's own.
constexpr CUresult kInsufficientDriver = 35;

template <typename Function>
bool find(void* library, const char* symbol, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, symbol));
  if (function == nullptr)
    std::fprintf(stderr,
                 "aliquot runtime: the driver has no %s; it must be of CUDA 12.0 or newer\n",
                 symbol);
  return function != nullptr;
}

Driver load() {
  Driver loaded;
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    std::fprintf(stderr, "aliquot runtime: no driver: %s\n", dlerror());
    loaded.ready = kInsufficientDriver;
    return loaded;
  }
#define ALIQUOT_RUNTIME_FIND(symbol)            \
  if (!find(library, #symbol, loaded.symbol)) { \
    loaded.ready = kInsufficientDriver;         \
    return loaded;                              \
  }
  ALIQUOT_RUNTIME_CALLS(ALIQUOT_RUNTIME_FIND)
#undef ALIQUOT_RUNTIME_FIND
  loaded.ready = loaded.cuInit(0);
  return loaded;
}

// Each primary context is retained once and kept, as the CUDA runtime keeps it.
CUresult primary_context(int device, CUcontext& context) {
  static std::mutex mutex;
  static auto* const kept = new std::map<int, CUcontext>;  // NOLINT: outlives static destructors
  const std::lock_guard lock(mutex);
  const auto found = kept->find(device);
  if (found != kept->end()) {
    context = found->second;
    return CUDA_SUCCESS;
  }
  const CUresult result = driver().cuDevicePrimaryCtxRetain(&context, device);
  if (result == CUDA_SUCCESS) kept->emplace(device, context);
  return result;
}

}  // namespace

const Driver& driver() {
  static const Driver instance = load();
  return instance;
}

int& thread_device() {
  static thread_local int device = 0;
  return device;
}

CUresult enter() {
  const Driver& it = driver();
  if (it.ready != CUDA_SUCCESS) return it.ready;
  CUcontext context = nullptr;
  CUresult result = it.cuCtxGetCurrent(&context);
  if (result != CUDA_SUCCESS || context != nullptr) return result;
  result = primary_context(thread_device(), context);
  return result == CUDA_SUCCESS ? it.cuCtxSetCurrent(context) : result;
}

CUresult& last_error() {
  static thread_local CUresult error = CUDA_SUCCESS;
  return error;
}

CUresult noted(CUresult result) {
  if (result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_READY) last_error() = result;
  return result;
}

}  // namespace aliquot::runtime
