#include "simdriver/nvml/mig_view.h"

namespace aliquot::simdriver::nvml {

const MigProfile& MigDevice::profile() const {
  return *std::ranges::find(gpu.model().mig, gpu_instance.profile, &MigProfile::id);
}

std::string MigDevice::name() const {
  std::string slices;
  if (compute_instance.size < profile().compute_slices)
    slices = std::to_string(compute_instance.size) + "c.";
  return gpu.model().product + " MIG " + slices + profile().name;
}

std::string MigDevice::uuid() const {
  // The GPU's own with the instance's numbers mixed in; where it starts, not which id it has,
  // as the identity of a place.
  Uuid mixed = gpu.spec().uuid;
  mixed[0] = static_cast<std::uint8_t>(mixed[0] ^ 0x5a);
  mixed[14] = static_cast<std::uint8_t>(mixed[14] + 16 * gpu_instance.start + gpu_instance.size);
  mixed[15] =
      static_cast<std::uint8_t>(mixed[15] + 16 * compute_instance.start + compute_instance.size);
  return "MIG-" + gpu_uuid_text(mixed).substr(4);
}

std::optional<MigPart> gpu_instance_in(const MigReading& reading, unsigned id) {
  for (const MigPart& part : reading.parts)
    if (is_gpu_instance(part) && part.gpu_instance == id) return part;
  return std::nullopt;
}

std::optional<MigPart> compute_instance_in(const MigReading& reading, unsigned gpu_instance,
                                           unsigned id) {
  for (const MigPart& part : reading.parts)
    if (!is_gpu_instance(part) && part.gpu_instance == gpu_instance && part.compute_instance == id)
      return part;
  return std::nullopt;
}

bool is_mig_device(nvmlDevice_t handle) {
  return InstanceHandles::instance().find_device(handle).has_value();
}

}  // namespace aliquot::simdriver::nvml
