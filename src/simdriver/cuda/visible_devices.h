// CUDA_VISIBLE_DEVICES as the driver reads it (CUDA programming guide, environment variables).
// CUDA_DEVICE_ORDER: all GPUs of a simulated node are listed in PCI order, and FASTEST_FIRST keeps
// that among equal GPUs; the machine presets have equal GPUs only. Pure.
#pragma once

#include <span>
#include <vector>

#include "simdriver/channel/messages.h"

namespace aliquot::simdriver {

// Indexes into `all`, in the program's order. `list` nullptr: unset, all. Entries are numbers or
// "GPU-" and a prefix of a UUID that fits one GPU; the first bad entry ends the list; a GPU named
// twice makes it empty.
std::vector<unsigned> visible_devices(std::span<const DeviceInfo> all, const char* list);

}  // namespace aliquot::simdriver
