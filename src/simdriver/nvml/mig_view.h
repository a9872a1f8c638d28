// How bodies look at a GPU's MIG instances. Any thread; while the library is held.
#pragma once

#include <optional>
#include <string>

#include "simdriver/nvml/answer.h"
#include "simdriver/nvml/instance_handles.h"

namespace aliquot::simdriver::nvml {

// One compute instance with the GPU instance that it is in.
struct MigDevice {
  Gpu gpu;
  MigPart gpu_instance;
  MigPart compute_instance;

  const MigProfile& profile() const;
  std::string name() const;  // "NVIDIA A100-SXM4-80GB MIG 1g.10gb"
  std::string uuid() const;  // "MIG-..."
  // Its own memory and processes; nothing where nobody runs instances (a test's board).
  nvmlReturn_t read(GpuReading& out) const;
};

inline bool is_gpu_instance(const MigPart& part) {
  return part.compute_instance == kNoComputeInstance;
}

std::optional<MigPart> gpu_instance_in(const MigReading& reading, unsigned id);
std::optional<MigPart> compute_instance_in(const MigReading& reading, unsigned gpu_instance,
                                           unsigned id);

// fn(gpu, reading) on a GPU that can do MIG.
template <typename Fn>
nvmlReturn_t with_mig(nvmlDevice_t device, Fn fn) {
  return with_gpu(device, [&](const Gpu& gpu) -> nvmlReturn_t {
    if (gpu.model().mig.empty()) return NVML_ERROR_NOT_SUPPORTED;
    MigReading reading;
    const nvmlReturn_t result = gpu.telemetry.mig(gpu.index, reading);
    return result == NVML_SUCCESS ? fn(gpu, std::as_const(reading)) : result;
  });
}

// The MIG device of a handle: INVALID_ARGUMENT for handles of GPUs, NOT_FOUND when it is gone.
template <typename Fn>
nvmlReturn_t with_mig_device(nvmlDevice_t handle, Fn fn) {
  const auto known = InstanceHandles::instance().find_device(handle);
  if (!known) return NVML_ERROR_INVALID_ARGUMENT;
  return with_library([&](const Library::Held& held) -> nvmlReturn_t {
    if (known->gpu >= held.gpu_count()) return NVML_ERROR_INVALID_ARGUMENT;
    const Gpu gpu = *held.gpu(held.handle(known->gpu));
    MigReading reading;
    const nvmlReturn_t result = gpu.telemetry.mig(gpu.index, reading);
    if (result != NVML_SUCCESS) return result;
    const auto parent = gpu_instance_in(reading, known->gpu_instance);
    const auto own = compute_instance_in(reading, known->gpu_instance, known->id);
    return parent && own ? fn(MigDevice{gpu, *parent, *own}) : NVML_ERROR_NOT_FOUND;
  });
}

bool is_mig_device(nvmlDevice_t handle);

}  // namespace aliquot::simdriver::nvml
