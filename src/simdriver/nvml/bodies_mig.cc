// MIG: the profiles of a product and where their instances may lie.

#include <array>
#include <vector>

#include "simdriver/nvml/answer.h"
#include "simdriver/nvml/bodies.h"

namespace aliquot::simdriver::nvml::bodies {
namespace {

bool is_capable(const Gpu& gpu) { return !gpu.model().mig.empty(); }

// NVML names profiles twice: by a fixed enumeration (here), and by the id that a product gives it.
// Which of a product's profiles an enumerator means follows from its slices and from whether it is
// the plain one (the least memory), the one with media engines, or the one with more memory.
enum class Variant { kPlain, kMedia, kWide };
struct ProfileName {
  unsigned enumerator;
  unsigned slices;
  Variant variant;
};
constexpr std::array kProfileNames{
    ProfileName{NVML_GPU_INSTANCE_PROFILE_1_SLICE, 1, Variant::kPlain},
    ProfileName{NVML_GPU_INSTANCE_PROFILE_2_SLICE, 2, Variant::kPlain},
    ProfileName{NVML_GPU_INSTANCE_PROFILE_3_SLICE, 3, Variant::kPlain},
    ProfileName{NVML_GPU_INSTANCE_PROFILE_4_SLICE, 4, Variant::kPlain},
    ProfileName{NVML_GPU_INSTANCE_PROFILE_7_SLICE, 7, Variant::kPlain},
    ProfileName{NVML_GPU_INSTANCE_PROFILE_1_SLICE_REV1, 1, Variant::kMedia},
    ProfileName{NVML_GPU_INSTANCE_PROFILE_2_SLICE_REV1, 2, Variant::kMedia},
    ProfileName{NVML_GPU_INSTANCE_PROFILE_1_SLICE_REV2, 1, Variant::kWide},
};

const MigProfile* profile_named(const GpuModel& model, const ProfileName& name) {
  const MigProfile* plain = nullptr;
  for (const MigProfile& profile : model.mig) {
    if (profile.compute_slices != name.slices) continue;
    const bool media = profile.name.ends_with("+me");
    if (media && name.variant == Variant::kMedia) return &profile;
    if (media) continue;
    if (plain == nullptr || profile.memory_slots < plain->memory_slots) plain = &profile;
  }
  if (name.variant == Variant::kPlain || plain == nullptr)
    return name.variant == Variant::kPlain ? plain : nullptr;
  if (name.variant == Variant::kMedia) return nullptr;
  for (const MigProfile& profile : model.mig)
    if (profile.compute_slices == name.slices && !profile.name.ends_with("+me") &&
        profile.memory_slots > plain->memory_slots)
      return &profile;
  return nullptr;
}

const MigProfile* profile_by_enumerator(const GpuModel& model, unsigned enumerator) {
  for (const ProfileName& name : kProfileNames)
    if (name.enumerator == enumerator) return profile_named(model, name);
  return nullptr;
}

const MigProfile* profile_by_id(const GpuModel& model, unsigned id) {
  const auto found = std::ranges::find(model.mig, id, &MigProfile::id);
  return found == model.mig.end() ? nullptr : &*found;
}

template <typename Info>
void fill_profile(const MigProfile& profile, Info& info) {
  info.id = profile.id;
  info.slices = profile.compute_slices;
  info.instances = profile.max_instances;
  info.multiprocessors = profile.sms;
  info.copy_engines = profile.copy_engines;
  info.decoders = profile.decoders;
  info.encoders = 0;
  info.jpeg_engines = profile.jpeg_engines;
  info.ofa_engines = profile.ofa_engines;
  info.memory_mib = profile.memory_mib;
  if constexpr (requires { info.p2p_supported; }) info.p2p_supported = 0;
  if constexpr (requires { info.capabilities; }) info.capabilities = 0;
  if constexpr (requires { info.name; }) put_text("MIG " + profile.name, info.name);
}

// The caller's struct is version 2 or 3, by its version field.
nvmlReturn_t fill_versioned(const MigProfile& profile, nvmlGpuInstanceProfileInfo_v2_t* info) {
  if (has_version(info, 2)) {
    fill_profile(profile, *info);
    return NVML_SUCCESS;
  }
  nvmlGpuInstanceProfileInfo_v3_t third{};
  third.version = driver_abi::nvml_struct_version<nvmlGpuInstanceProfileInfo_v3_t>(3);
  if (info->version != third.version) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
  fill_profile(profile, third);
  static_assert(sizeof(third) == sizeof(*info));
  std::memcpy(info, &third, sizeof(third));
  return NVML_SUCCESS;
}

nvmlReturn_t placements(nvmlDevice_t device, unsigned id, nvmlGpuInstancePlacement_t* out,
                        unsigned* count) {
  return with_gpu(device, [&](const Gpu& gpu) -> nvmlReturn_t {
    if (!is_capable(gpu)) return NVML_ERROR_NOT_SUPPORTED;
    const MigProfile* profile = profile_by_id(gpu.model(), id);
    if (count == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    if (profile == nullptr) return NVML_ERROR_NOT_SUPPORTED;
    std::vector<nvmlGpuInstancePlacement_t> list;
    for (const unsigned start : profile->starts) list.push_back({start, profile->memory_slots});
    if (out == nullptr) {  // asks for the size
      *count = static_cast<unsigned>(list.size());
      return NVML_SUCCESS;
    }
    return copy_list(list, count, out);
  });
}

}  // namespace

nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfo(nvmlDevice_t device, unsigned profile,
                                                 nvmlGpuInstanceProfileInfo_t* info) {
  return with_gpu(device, [&](const Gpu& gpu) -> nvmlReturn_t {
    if (info == nullptr || profile >= NVML_GPU_INSTANCE_PROFILE_COUNT)
      return NVML_ERROR_INVALID_ARGUMENT;
    const MigProfile* known = profile_by_enumerator(gpu.model(), profile);
    if (known == nullptr) return NVML_ERROR_NOT_SUPPORTED;
    fill_profile(*known, *info);
    return NVML_SUCCESS;
  });
}
nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfoV(nvmlDevice_t device, unsigned profile,
                                                  nvmlGpuInstanceProfileInfo_v2_t* info) {
  return with_gpu(device, [&](const Gpu& gpu) -> nvmlReturn_t {
    if (info == nullptr || profile >= NVML_GPU_INSTANCE_PROFILE_COUNT)
      return NVML_ERROR_INVALID_ARGUMENT;
    const MigProfile* known = profile_by_enumerator(gpu.model(), profile);
    return known == nullptr ? NVML_ERROR_NOT_SUPPORTED : fill_versioned(*known, info);
  });
}
nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfoByIdV(nvmlDevice_t device, unsigned id,
                                                      nvmlGpuInstanceProfileInfo_v2_t* info) {
  return with_gpu(device, [&](const Gpu& gpu) -> nvmlReturn_t {
    if (info == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
    const MigProfile* known = profile_by_id(gpu.model(), id);
    return known == nullptr ? NVML_ERROR_NOT_SUPPORTED : fill_versioned(*known, info);
  });
}
nvmlReturn_t nvmlDeviceGetGpuInstancePossiblePlacements(nvmlDevice_t device, unsigned id,
                                                        nvmlGpuInstancePlacement_t* out,
                                                        unsigned* count) {
  return placements(device, id, out, count);
}
nvmlReturn_t nvmlDeviceGetGpuInstancePossiblePlacements_v2(nvmlDevice_t device, unsigned id,
                                                           nvmlGpuInstancePlacement_t* out,
                                                           unsigned* count) {
  return placements(device, id, out, count);
}

}  // namespace aliquot::simdriver::nvml::bodies
