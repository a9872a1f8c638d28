// What a client library is told of one GPU, or of a MIG instance in it. Pure.
#pragma once

#include <cstdint>

#include "simdriver/channel/messages.h"
#include "simdriver/machine_spec.h"

namespace aliquot::simdriver {

DeviceInfo device_info(const MachineSpec& spec, std::uint32_t gpu);
// `model`: the GPU cut down to the instance (mig_instance.h).
DeviceInfo instance_info(const MachineSpec& spec, std::uint32_t gpu, const GpuModel& model,
                         const Uuid& uuid);

}  // namespace aliquot::simdriver
