#include "simdriver/nvml/mig_view.h"

#include "simdriver/mig_instance.h"

namespace aliquot::simdriver::nvml {

const MigProfile& MigDevice::profile() const {
  return *std::ranges::find(gpu.model().mig, gpu_instance.profile, &MigProfile::id);
}

std::string MigDevice::name() const {
  return mig_device_name(gpu.model(), profile(), compute_instance.size);
}

std::string MigDevice::uuid() const {
  const GpuInstance parent{gpu_instance.gpu_instance, gpu_instance.profile, gpu_instance.start,
                           gpu_instance.size};
  const ComputeInstance own{compute_instance.compute_instance, gpu_instance.gpu_instance,
                            compute_instance.start, compute_instance.size};
  return mig_uuid_text(mig_device_uuid(gpu.spec().uuid, parent, own));
}

nvmlReturn_t MigDevice::read(GpuReading& out) const {
  if (compute_instance.device == kNoDevice) return NVML_SUCCESS;
  return gpu.telemetry.read(compute_instance.device, out);
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
