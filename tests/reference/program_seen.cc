// What others see of the program: NVML, and a child of a fork.
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <span>

#include "driver_abi/nvml_functions.h"
#include "reference/program.h"
#include "simdriver/cuda/test_driver.h"

namespace aliquot::reference {
namespace {

template <typename Function>
Function nvml(const char* symbol) {
  static void* const handle =
      dlopen((simdriver::machine_directory("test") / "lib" / "libnvidia-ml.so.1").c_str(),
             RTLD_NOW | RTLD_LOCAL);
  return reinterpret_cast<Function>(handle == nullptr ? nullptr : dlsym(handle, symbol));
}
#define NVML(symbol) (nvml<driver_abi::fn::symbol>(#symbol))

}  // namespace

// Of each GPU what is used and free, and the processes that have a context: this one, and on GPU 0
// perhaps the other. Who of the two holds how much of it is not followed, the sum is.
void Program::check_nvml() {
  static const nvmlReturn_t initialised = NVML(nvmlInit_v2)();
  expect("nvmlInit", CUDA_SUCCESS, static_cast<CUresult>(initialised));
  for (unsigned gpu = 0; gpu < plan_.gpus; ++gpu) {
    nvmlDevice_t device = nullptr;
    nvmlMemory_t memory{};
    std::array<nvmlProcessInfo_t, 8> processes{};
    auto count = static_cast<unsigned>(processes.size());
    expect("nvmlDeviceGetHandleByIndex", CUDA_SUCCESS,
           static_cast<CUresult>(NVML(nvmlDeviceGetHandleByIndex_v2)(gpu, &device)));
    expect("nvmlDeviceGetMemoryInfo", CUDA_SUCCESS,
           static_cast<CUresult>(NVML(nvmlDeviceGetMemoryInfo)(device, &memory)));
    expect("nvmlDeviceGetComputeRunningProcesses", CUDA_SUCCESS,
           static_cast<CUresult>(
               NVML(nvmlDeviceGetComputeRunningProcesses_v3)(device, &count, processes.data())));
    expect_number("free memory by NVML", model_.free_bytes(gpu), memory.free);
    expect_number("total memory by NVML", memory.total, memory.used + memory.free);
    const bool other = gpu == 0 && peer_.started && peer_.socket >= 0;
    expect_number("processes by NVML", other ? 2 : 1, count);
    Bytes held = 0;
    for (const nvmlProcessInfo_t& process : std::span(processes).first(count)) {
      if (process.pid != static_cast<unsigned>(getpid()) &&
          process.pid != static_cast<unsigned>(peer_.pid)) {
        differ("NVML lists the stranger " + std::to_string(process.pid));
      }
      held += process.used_bytes;
    }
    expect_number("memory of all processes by NVML",
                  model_.total_bytes(gpu) - model_.free_bytes(gpu), held);
  }
}

// It has no driver, and changes nothing of its parent's.
void Program::step_child() {
  const pid_t child = fork();
  if (child == 0) {
    size_t free = 0;
    CUdeviceptr address = 0;
    const bool refused = CU(cuMemGetInfo_v2)(&free, nullptr) == CUDA_ERROR_NOT_INITIALIZED &&
                         CU(cuMemAlloc_v2)(&address, 4096) == CUDA_ERROR_NOT_INITIALIZED &&
                         CU(cuCtxSynchronize)() == CUDA_ERROR_NOT_INITIALIZED &&
                         CU(cuInit)(0) == CUDA_ERROR_NOT_INITIALIZED;
    _exit(refused ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  expect_number("calls that the child of a fork was granted", 0, static_cast<unsigned>(status));
}

}  // namespace aliquot::reference
