#include "simdriver/mig_instance.h"

#include <algorithm>

namespace aliquot::simdriver {

std::string mig_device_name(const GpuModel& gpu, const MigProfile& profile, unsigned slices) {
  const bool part = slices < profile.compute_slices;
  return gpu.product + " MIG " + (part ? std::to_string(slices) + "c." : "") + profile.name;
}

Uuid mig_device_uuid(const Uuid& gpu, const GpuInstance& parent, const ComputeInstance& own) {
  Uuid mixed = gpu;
  mixed[0] = static_cast<std::uint8_t>(mixed[0] ^ 0x5a);
  mixed[14] = static_cast<std::uint8_t>(mixed[14] + 16 * parent.start + parent.size);
  mixed[15] = static_cast<std::uint8_t>(mixed[15] + 16 * own.start + own.slices);
  return mixed;
}

std::string mig_uuid_text(const Uuid& uuid) { return "MIG-" + gpu_uuid_text(uuid).substr(4); }

GpuModel model_of_instance(const GpuModel& gpu, const MigProfile& profile, unsigned slices) {
  // All slots of memory: those of the profile that has the most.
  unsigned slots = 1;
  for (const MigProfile& other : gpu.mig) slots = std::max(slots, other.memory_slots);
  GpuModel part = gpu;
  part.product = mig_device_name(gpu, profile, slices);
  part.sms = std::max(1u, profile.sms * slices / std::max(profile.compute_slices, 1u));
  part.copy_engines = profile.copy_engines;
  part.decoders = profile.decoders;
  part.memory.driver_total_bytes = profile.memory_mib << 20;
  part.memory.nvml_total_bytes = profile.memory_mib << 20;
  part.memory.bus_bits = std::max(1u, gpu.memory.bus_bits * profile.memory_slots / slots);
  part.memory.l2_bytes = gpu.memory.l2_bytes * profile.memory_slots / slots;
  part.nvlink = {};
  part.mig.clear();
  return part;
}

}  // namespace aliquot::simdriver
