#include "inventory/nvml_mig.h"

#include <algorithm>
#include <vector>

namespace aliquot::inventory {
namespace {

NvmlMigProfile profile_from(const nvmlGpuInstanceProfileInfo_v2_t& info) {
  return {.name = info.name,
          .id = info.id,
          .free = 0,
          .total = info.instances,
          .memory_mib = info.memory_mib,
          .p2p = info.p2p_supported != 0,
          .multiprocessors = info.multiprocessors,
          .copy_engines = info.copy_engines,
          .decoders = info.decoders,
          .encoders = info.encoders,
          .jpeg_engines = info.jpeg_engines,
          .ofa_engines = info.ofa_engines};
}

// The profiles have numbers with gaps: a product lacks some, and lists them by id.
std::vector<NvmlMigProfile> profiles_of(const NvmlLibrary& library, nvmlDevice_t device) {
  std::vector<NvmlMigProfile> profiles;
  for (unsigned number = 0; number < NVML_GPU_INSTANCE_PROFILE_COUNT; ++number) {
    nvmlGpuInstanceProfileInfo_v2_t info{};
    info.version = driver_abi::nvml_struct_version<nvmlGpuInstanceProfileInfo_v2_t>(2);
    if (library.call<Id::nvmlDeviceGetGpuInstanceProfileInfoV>(device, number, &info) !=
        NVML_SUCCESS)
      continue;
    NvmlMigProfile& profile = profiles.emplace_back(profile_from(info));
    unsigned left = 0;
    if (library.call<Id::nvmlDeviceGetGpuInstanceRemainingCapacity>(device, info.id, &left) ==
        NVML_SUCCESS)
      profile.free = left;
  }
  return profiles;
}

// NVML lists the handles of one profile at a time, as many as the array must have room for.
template <Id kId, typename Handle, typename Parent>
std::vector<Handle> handles_of(const NvmlLibrary& library, Parent parent, unsigned profile,
                               unsigned most) {
  std::vector<Handle> handles(most);
  unsigned count = most;
  if (most == 0 || library.call<kId>(parent, profile, handles.data(), &count) != NVML_SUCCESS)
    return {};
  handles.resize(std::min(count, most));
  return handles;
}

void add_compute_instances(const NvmlLibrary& library, nvmlGpuInstance_t parent,
                           unsigned gpu_instance, NvmlMig& mig) {
  for (unsigned number = 0; number < NVML_COMPUTE_INSTANCE_PROFILE_COUNT; ++number) {
    nvmlComputeInstanceProfileInfo_v2_t profile{};
    profile.version = driver_abi::nvml_struct_version<nvmlComputeInstanceProfileInfo_v2_t>(2);
    if (library.call<Id::nvmlGpuInstanceGetComputeInstanceProfileInfoV>(
            parent, number, NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED, &profile) != NVML_SUCCESS)
      continue;
    const auto handles = handles_of<Id::nvmlGpuInstanceGetComputeInstances, nvmlComputeInstance_t>(
        library, parent, profile.id, profile.instances);
    for (const nvmlComputeInstance_t handle : handles) {
      nvmlComputeInstanceInfo_t info{};
      if (library.call<Id::nvmlComputeInstanceGetInfo_v2>(handle, &info) != NVML_SUCCESS) continue;
      mig.compute_instances.push_back({gpu_instance, info.id, profile.name, info.profile,
                                       info.placement.start, info.placement.size});
    }
  }
}

}  // namespace

Result<NvmlMig> read_mig(const NvmlLibrary& library, nvmlDevice_t device) {
  NvmlMig mig;
  unsigned current = 0;
  unsigned pending = 0;
  const nvmlReturn_t asked = library.call<Id::nvmlDeviceGetMigMode>(device, &current, &pending);
  if (asked == NVML_ERROR_NOT_SUPPORTED) return mig;
  if (asked != NVML_SUCCESS) return library.error(Id::nvmlDeviceGetMigMode, asked);
  mig.on = current == NVML_DEVICE_MIG_ENABLE;
  mig.profiles = profiles_of(library, device);
  if (!mig.on) return mig;
  for (const NvmlMigProfile& profile : mig.profiles) {
    const auto handles = handles_of<Id::nvmlDeviceGetGpuInstances, nvmlGpuInstance_t>(
        library, device, profile.id, profile.total);
    for (const nvmlGpuInstance_t handle : handles) {
      nvmlGpuInstanceInfo_t info{};
      if (library.call<Id::nvmlGpuInstanceGetInfo>(handle, &info) != NVML_SUCCESS) continue;
      mig.instances.push_back({info.id, std::nullopt, profile.name, info.profile,
                               info.placement.start, info.placement.size});
      add_compute_instances(library, handle, info.id, mig);
    }
  }
  std::ranges::sort(mig.instances, {}, &NvmlMigInstance::gpu_instance);
  std::ranges::sort(mig.compute_instances, {}, [](const NvmlMigInstance& instance) {
    return std::pair(instance.gpu_instance, instance.compute_instance);
  });
  return mig;
}

}  // namespace aliquot::inventory
