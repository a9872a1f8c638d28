// MIG: its mode, GPU instances, compute instances, and the devices that they are.

#include <array>
#include <vector>

#include "simdriver/mig_layout.h"
#include "simdriver/nvml/bodies.h"
#include "simdriver/nvml/mig_view.h"

namespace aliquot::simdriver::nvml::bodies {
namespace {

// Slices of each compute instance profile; its id and enumerator are its place here.
constexpr std::array<unsigned, 5> kComputeSlices{1, 2, 3, 4, 7};

// fn(gpu, the instance, reading) for the handle of a GPU instance.
template <typename Fn>
nvmlReturn_t with_instance(nvmlGpuInstance_t handle, Fn fn) {
  const auto known = InstanceHandles::instance().find(handle);
  if (!known) return NVML_ERROR_INVALID_ARGUMENT;
  return with_library([&](const Library::Held& held) -> nvmlReturn_t {
    if (known->gpu >= held.gpu_count()) return NVML_ERROR_INVALID_ARGUMENT;
    const Gpu gpu = *held.gpu(held.handle(known->gpu));
    MigReading reading;
    const nvmlReturn_t result = gpu.telemetry.mig(gpu.index, reading);
    if (result != NVML_SUCCESS) return result;
    const auto part = gpu_instance_in(reading, known->id);
    return part ? fn(gpu, *part, reading) : NVML_ERROR_NOT_FOUND;
  });
}

const MigProfile& profile_of(const Gpu& gpu, const MigPart& instance) {
  return *std::ranges::find(gpu.model().mig, instance.profile, &MigProfile::id);
}

// The same cut as the server's, to ask it what would fit.
MigLayout layout_of(const Gpu& gpu, const MigReading& reading) {
  MigLayout layout(gpu.model().mig);
  layout.switch_mode(reading.on);
  unsigned id = 0;
  for (const MigPart& part : reading.parts)
    if (is_gpu_instance(part)) layout.create(part.profile, part.start, id);
  return layout;
}

nvmlReturn_t create(nvmlDevice_t device, unsigned profile, unsigned start,
                    nvmlGpuInstance_t* instance) {
  return with_mig(device, [&](const Gpu& gpu, const MigReading& reading) -> nvmlReturn_t {
    if (instance == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    if (!reading.on) return NVML_ERROR_NOT_SUPPORTED;
    unsigned id = 0;
    const nvmlReturn_t result =
        gpu.telemetry.change_mig({gpu.index, MigAction::kCreate, profile, start}, id);
    if (result == NVML_SUCCESS)
      *instance = InstanceHandles::instance().gpu_instance({gpu.index, id});
    return result;
  });
}

nvmlReturn_t create_compute(nvmlGpuInstance_t handle, unsigned profile,
                            nvmlComputeInstance_t* instance) {
  return with_instance(
      handle, [&](const Gpu& gpu, const MigPart& parent, const MigReading&) -> nvmlReturn_t {
        if (instance == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
        if (profile >= kComputeSlices.size()) return NVML_ERROR_NOT_SUPPORTED;
        unsigned id = 0;
        const nvmlReturn_t result = gpu.telemetry.change_mig(
            {gpu.index, MigAction::kCreateCompute, parent.gpu_instance, kComputeSlices[profile]},
            id);
        if (result == NVML_SUCCESS)
          *instance =
              InstanceHandles::instance().compute_instance({gpu.index, parent.gpu_instance, id});
        return result;
      });
}

// NVML's lists of handles ask for the size with a null array.
template <typename T>
nvmlReturn_t copy_handles(const std::vector<T>& handles, unsigned* count, T* out) {
  if (count == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *count = static_cast<unsigned>(handles.size());
  if (out != nullptr) std::copy(handles.begin(), handles.end(), out);
  return NVML_SUCCESS;
}

unsigned free_slices(const MigProfile& profile, unsigned gpu_instance, const MigReading& reading) {
  unsigned free = profile.compute_slices;
  for (const MigPart& part : reading.parts)
    if (!is_gpu_instance(part) && part.gpu_instance == gpu_instance) free -= part.size;
  return free;
}

template <typename Info>
void fill_compute_profile(const MigProfile& parent, unsigned profile, Info& info) {
  const unsigned slices = kComputeSlices[profile];
  info.id = profile;
  info.slices = slices;
  info.instances = parent.compute_slices / slices;
  info.multiprocessors = parent.sms * slices / parent.compute_slices;
  info.copy_engines = parent.copy_engines;
  info.decoders = parent.decoders;
  info.encoders = 0;
  info.jpeg_engines = parent.jpeg_engines;
  info.ofa_engines = parent.ofa_engines;
  if constexpr (requires { info.name; }) {
    const std::string part =
        slices < parent.compute_slices ? std::to_string(slices) + "c." : std::string();
    put_text("MIG " + part + parent.name, info.name);
  }
}

template <typename Info>
nvmlReturn_t compute_profile(nvmlGpuInstance_t handle, unsigned profile, unsigned engine,
                             Info* info) {
  return with_instance(
      handle, [&](const Gpu& gpu, const MigPart& part, const MigReading&) -> nvmlReturn_t {
        if (info == nullptr || profile >= NVML_COMPUTE_INSTANCE_PROFILE_COUNT ||
            engine != NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED)
          return NVML_ERROR_INVALID_ARGUMENT;
        const MigProfile& parent = profile_of(gpu, part);
        if (profile >= kComputeSlices.size() || kComputeSlices[profile] > parent.compute_slices)
          return NVML_ERROR_NOT_SUPPORTED;
        fill_compute_profile(parent, profile, *info);
        return NVML_SUCCESS;
      });
}

nvmlReturn_t attributes(nvmlDevice_t device, nvmlDeviceAttributes_t* out) {
  return with_mig_device(device, [&](const MigDevice& mig) -> nvmlReturn_t {
    if (out == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    const MigProfile& profile = mig.profile();
    out->multiprocessors = profile.sms * mig.compute_instance.size / profile.compute_slices;
    out->copy_engines = profile.copy_engines;
    out->decoders = profile.decoders;
    out->encoders = 0;
    out->jpeg_engines = profile.jpeg_engines;
    out->ofa_engines = profile.ofa_engines;
    out->gpu_slices = profile.compute_slices;
    out->compute_slices = mig.compute_instance.size;
    out->memory_mib = profile.memory_mib;
    return NVML_SUCCESS;
  });
}

nvmlReturn_t compute_info(nvmlComputeInstance_t handle, nvmlComputeInstanceInfo_t* info) {
  const auto known = InstanceHandles::instance().find(handle);
  if (!known || info == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  const nvmlGpuInstance_t parent =
      InstanceHandles::instance().gpu_instance({known->gpu, known->gpu_instance});
  return with_instance(
      parent, [&](const Gpu& gpu, const MigPart&, const MigReading& reading) -> nvmlReturn_t {
        const auto part = compute_instance_in(reading, known->gpu_instance, known->id);
        if (!part) return NVML_ERROR_NOT_FOUND;
        const auto profile = std::ranges::find(kComputeSlices, part->size);
        *info = {};
        info->device = gpu.handle;
        info->gpu_instance = parent;
        info->id = known->id;
        info->profile = static_cast<unsigned>(profile - kComputeSlices.begin());
        info->placement = {part->start, part->size};
        return NVML_SUCCESS;
      });
}

nvmlReturn_t instance_id(nvmlDevice_t device, unsigned* id, unsigned (*of)(const MigDevice&)) {
  if (!is_mig_device(device))
    return with_gpu(device, [](const Gpu&) { return NVML_ERROR_NOT_SUPPORTED; });
  return with_mig_device(device, [&](const MigDevice& mig) -> nvmlReturn_t {
    if (id == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    *id = of(mig);
    return NVML_SUCCESS;
  });
}

}  // namespace

nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned* current, unsigned* pending) {
  return with_mig(device, [&](const Gpu&, const MigReading& reading) -> nvmlReturn_t {
    if (current == nullptr || pending == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    *current = reading.on ? NVML_DEVICE_MIG_ENABLE : NVML_DEVICE_MIG_DISABLE;
    *pending = *current;
    return NVML_SUCCESS;
  });
}
nvmlReturn_t nvmlDeviceSetMigMode(nvmlDevice_t device, unsigned mode, nvmlReturn_t* activation) {
  return with_mig(device, [&](const Gpu& gpu, const MigReading&) -> nvmlReturn_t {
    if (activation == nullptr || mode > NVML_DEVICE_MIG_ENABLE) return NVML_ERROR_INVALID_ARGUMENT;
    unsigned id = 0;
    *activation = gpu.telemetry.change_mig({gpu.index, MigAction::kSwitchMode, mode, 0}, id);
    return *activation;
  });
}
nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned* count) {
  return with_gpu(device, [&](const Gpu& gpu) -> nvmlReturn_t {
    if (count == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    MigReading reading;
    const nvmlReturn_t result = gpu.telemetry.mig(gpu.index, reading);
    *count = 0;
    if (reading.on)
      for (const MigProfile& profile : gpu.model().mig)
        *count = std::max(*count, profile.compute_slices);
    return result;
  });
}

nvmlReturn_t nvmlDeviceCreateGpuInstance(nvmlDevice_t device, unsigned profile,
                                         nvmlGpuInstance_t* instance) {
  return create(device, profile, kAnywhere, instance);
}
nvmlReturn_t nvmlDeviceCreateGpuInstanceWithPlacement(nvmlDevice_t device, unsigned profile,
                                                      const nvmlGpuInstancePlacement_t* placement,
                                                      nvmlGpuInstance_t* instance) {
  return placement == nullptr ? NVML_ERROR_INVALID_ARGUMENT
                              : create(device, profile, placement->start, instance);
}
nvmlReturn_t nvmlGpuInstanceDestroy(nvmlGpuInstance_t handle) {
  return with_instance(handle, [](const Gpu& gpu, const MigPart& part, const MigReading&) {
    unsigned id = 0;
    return gpu.telemetry.change_mig({gpu.index, MigAction::kDestroy, part.gpu_instance, 0}, id);
  });
}
nvmlReturn_t nvmlDeviceGetGpuInstances(nvmlDevice_t device, unsigned profile,
                                       nvmlGpuInstance_t* out, unsigned* count) {
  return with_mig(device, [&](const Gpu& gpu, const MigReading& reading) -> nvmlReturn_t {
    if (!reading.on) return NVML_ERROR_NOT_SUPPORTED;
    std::vector<nvmlGpuInstance_t> handles;
    for (const MigPart& part : reading.parts)
      if (is_gpu_instance(part) && part.profile == profile)
        handles.push_back(InstanceHandles::instance().gpu_instance({gpu.index, part.gpu_instance}));
    return copy_handles(handles, count, out);
  });
}
nvmlReturn_t nvmlDeviceGetGpuInstanceById(nvmlDevice_t device, unsigned id,
                                          nvmlGpuInstance_t* instance) {
  return with_mig(device, [&](const Gpu& gpu, const MigReading& reading) -> nvmlReturn_t {
    if (instance == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    if (!reading.on) return NVML_ERROR_NOT_SUPPORTED;
    if (!gpu_instance_in(reading, id)) return NVML_ERROR_NOT_FOUND;
    *instance = InstanceHandles::instance().gpu_instance({gpu.index, id});
    return NVML_SUCCESS;
  });
}
nvmlReturn_t nvmlDeviceGetGpuInstanceRemainingCapacity(nvmlDevice_t device, unsigned profile,
                                                       unsigned* count) {
  return with_mig(device, [&](const Gpu& gpu, const MigReading& reading) -> nvmlReturn_t {
    if (count == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    if (!reading.on) return NVML_ERROR_NOT_SUPPORTED;
    const MigLayout layout = layout_of(gpu, reading);
    if (layout.profile(profile) == nullptr) return NVML_ERROR_NOT_SUPPORTED;
    *count = layout.remaining(profile);
    return NVML_SUCCESS;
  });
}
nvmlReturn_t nvmlGpuInstanceGetInfo(nvmlGpuInstance_t handle, nvmlGpuInstanceInfo_t* info) {
  return with_instance(
      handle, [&](const Gpu& gpu, const MigPart& part, const MigReading&) -> nvmlReturn_t {
        if (info == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
        *info = {gpu.handle, part.gpu_instance, part.profile, {part.start, part.size}};
        return NVML_SUCCESS;
      });
}

nvmlReturn_t nvmlGpuInstanceCreateComputeInstance(nvmlGpuInstance_t handle, unsigned profile,
                                                  nvmlComputeInstance_t* instance) {
  return create_compute(handle, profile, instance);
}
nvmlReturn_t nvmlComputeInstanceDestroy(nvmlComputeInstance_t handle) {
  const auto known = InstanceHandles::instance().find(handle);
  if (!known) return NVML_ERROR_INVALID_ARGUMENT;
  return with_library([&](const Library::Held& held) {
    unsigned id = 0;
    return held.telemetry().change_mig(
        {known->gpu, MigAction::kDestroyCompute, known->gpu_instance, known->id}, id);
  });
}
nvmlReturn_t nvmlComputeInstanceGetInfo(nvmlComputeInstance_t handle,
                                        nvmlComputeInstanceInfo_t* info) {
  nvmlComputeInstanceInfo_t whole;
  if (info == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  const nvmlReturn_t result = compute_info(handle, &whole);
  // The first version of the struct ends before the placement.
  if (result == NVML_SUCCESS)
    std::memcpy(info, &whole, offsetof(nvmlComputeInstanceInfo_t, placement));
  return result;
}
nvmlReturn_t nvmlComputeInstanceGetInfo_v2(nvmlComputeInstance_t handle,
                                           nvmlComputeInstanceInfo_t* info) {
  return compute_info(handle, info);
}
nvmlReturn_t nvmlGpuInstanceGetComputeInstances(nvmlGpuInstance_t handle, unsigned profile,
                                                nvmlComputeInstance_t* out, unsigned* count) {
  return with_instance(handle,
                       [&](const Gpu& gpu, const MigPart& parent, const MigReading& reading) {
                         if (profile >= kComputeSlices.size()) return NVML_ERROR_NOT_SUPPORTED;
                         std::vector<nvmlComputeInstance_t> handles;
                         for (const MigPart& part : reading.parts)
                           if (!is_gpu_instance(part) && part.gpu_instance == parent.gpu_instance &&
                               part.size == kComputeSlices[profile])
                             handles.push_back(InstanceHandles::instance().compute_instance(
                                 {gpu.index, part.gpu_instance, part.compute_instance}));
                         return copy_handles(handles, count, out);
                       });
}
nvmlReturn_t nvmlGpuInstanceGetComputeInstanceById(nvmlGpuInstance_t handle, unsigned id,
                                                   nvmlComputeInstance_t* instance) {
  return with_instance(
      handle,
      [&](const Gpu& gpu, const MigPart& parent, const MigReading& reading) -> nvmlReturn_t {
        if (instance == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
        if (!compute_instance_in(reading, parent.gpu_instance, id)) return NVML_ERROR_NOT_FOUND;
        *instance =
            InstanceHandles::instance().compute_instance({gpu.index, parent.gpu_instance, id});
        return NVML_SUCCESS;
      });
}
nvmlReturn_t nvmlGpuInstanceGetComputeInstanceProfileInfo(nvmlGpuInstance_t handle,
                                                          unsigned profile, unsigned engine,
                                                          nvmlComputeInstanceProfileInfo_t* info) {
  return compute_profile(handle, profile, engine, info);
}
nvmlReturn_t nvmlGpuInstanceGetComputeInstanceProfileInfoV(
    nvmlGpuInstance_t handle, unsigned profile, unsigned engine,
    nvmlComputeInstanceProfileInfo_v2_t* info) {
  if (const nvmlReturn_t checked = check_version(info, 2); checked != NVML_SUCCESS) return checked;
  return compute_profile(handle, profile, engine, info);
}
nvmlReturn_t nvmlGpuInstanceGetComputeInstanceRemainingCapacity(nvmlGpuInstance_t handle,
                                                                unsigned profile, unsigned* count) {
  return with_instance(
      handle, [&](const Gpu& gpu, const MigPart& part, const MigReading& reading) -> nvmlReturn_t {
        if (count == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
        if (profile >= kComputeSlices.size()) return NVML_ERROR_NOT_SUPPORTED;
        *count = free_slices(profile_of(gpu, part), part.gpu_instance, reading) /
                 kComputeSlices[profile];
        return NVML_SUCCESS;
      });
}

nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned index,
                                                 nvmlDevice_t* out) {
  return with_mig(device, [&](const Gpu& gpu, const MigReading& reading) -> nvmlReturn_t {
    if (out == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    unsigned seen = 0;
    for (const MigPart& part : reading.parts) {
      if (is_gpu_instance(part) || seen++ != index) continue;
      *out =
          InstanceHandles::instance().device({gpu.index, part.gpu_instance, part.compute_instance});
      return NVML_SUCCESS;
    }
    return NVML_ERROR_NOT_FOUND;
  });
}
nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t device, nvmlDevice_t* out) {
  return with_mig_device(device, [&](const MigDevice& mig) -> nvmlReturn_t {
    if (out == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    *out = mig.gpu.handle;
    return NVML_SUCCESS;
  });
}
nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned* is_mig) {
  if (is_mig == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  *is_mig = is_mig_device(device) ? 1 : 0;
  if (*is_mig != 0) return NVML_SUCCESS;
  return with_gpu(device, [](const Gpu&) { return NVML_SUCCESS; });
}
nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t device, unsigned* id) {
  return instance_id(device, id,
                     [](const MigDevice& mig) { return mig.gpu_instance.gpu_instance; });
}
nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t device, unsigned* id) {
  return instance_id(device, id,
                     [](const MigDevice& mig) { return mig.compute_instance.compute_instance; });
}
nvmlReturn_t nvmlDeviceGetAttributes(nvmlDevice_t device, nvmlDeviceAttributes_t* out) {
  return attributes(device, out);
}
nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t device, nvmlDeviceAttributes_t* out) {
  return attributes(device, out);
}

}  // namespace aliquot::simdriver::nvml::bodies
