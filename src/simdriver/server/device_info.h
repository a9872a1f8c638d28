// What a client library is told of one GPU. Pure.
#pragma once

#include <cstdint>

#include "simdriver/channel/messages.h"
#include "simdriver/machine_spec.h"

namespace aliquot::simdriver {

DeviceInfo device_info(const MachineSpec& spec, std::uint32_t device);

}  // namespace aliquot::simdriver
