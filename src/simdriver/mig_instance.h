// A compute instance as a device of its own: its name, its UUID, and what of the GPU it has. Pure.
#pragma once

#include <string>

#include "simdriver/machine_spec.h"
#include "simdriver/mig_layout.h"

namespace aliquot::simdriver {

// "NVIDIA A100-SXM4-80GB MIG 1c.3g.40gb"
std::string mig_device_name(const GpuModel& gpu, const MigProfile& profile, unsigned slices);

// The GPU's own with the instance's places mixed in: where it starts, not which id it has, is the
// identity of a place.
Uuid mig_device_uuid(const Uuid& gpu, const GpuInstance& parent, const ComputeInstance& own);
std::string mig_uuid_text(const Uuid& uuid);  // "MIG-xxxxxxxx-xxxx-..."

// The GPU cut down to the instance: multiprocessors, copy engines, memory with its bandwidth and
// its part of the L2 cache. No NVLink: instances have no peers.
GpuModel model_of_instance(const GpuModel& gpu, const MigProfile& profile, unsigned slices);

}  // namespace aliquot::simdriver
