// CUDA_VISIBLE_DEVICES as the driver reads it (CUDA programming guide, environment variables).
// CUDA_DEVICE_ORDER: all GPUs of a simulated node are listed in PCI order, and FASTEST_FIRST keeps
// that among equal GPUs; the machine presets have equal GPUs only.
//
// MIG (NVIDIA's MIG user guide, device enumeration): a process sees one compute instance, the first
// of those it may see, and no GPU beside it. A GPU that is cut is seen by its instances only. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "simdriver/channel/messages.h"

namespace aliquot::simdriver {

struct VisibleInstance {
  std::uint32_t number = 0;  // the server's
  unsigned gpu = 0;          // index of the GPU
  std::uint32_t gpu_instance = 0;
  std::uint32_t compute_instance = 0;
  std::array<std::uint8_t, 16> uuid{};
};

// The server's numbers of devices, in the program's order. `list` nullptr: unset, all. Entries are
// indexes of GPUs (one that is cut: its first instance), "GPU-" and a prefix of a UUID that fits
// one GPU, "MIG-" and a prefix of an instance's UUID, or "MIG-GPU-uuid/gpu instance/compute
// instance"; the first bad entry ends the list; a device named twice makes it empty.
std::vector<unsigned> visible_devices(std::span<const DeviceInfo> gpus,
                                      std::span<const VisibleInstance> instances, const char* list);

}  // namespace aliquot::simdriver
