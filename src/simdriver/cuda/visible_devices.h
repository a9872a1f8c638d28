// CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER as the driver reads them (CUDA programming guide,
// environment variables). How the driver guesses which GPU is faster is not published; here it is
// multiprocessors times clock, and equal GPUs stay in PCI order.
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

// The variables' values; nullptr: unset.
struct DeviceChoice {
  const char* list = nullptr;   // CUDA_VISIBLE_DEVICES; unset: all
  const char* order = nullptr;  // CUDA_DEVICE_ORDER; anything but PCI_BUS_ID: the fastest first
};

// The server's numbers of devices, in the program's order. Entries of the list are places of GPUs
// in that order (one that is cut: its first instance), "GPU-" and a prefix of a UUID that fits one
// GPU, "MIG-" and a prefix of an instance's UUID, or "MIG-GPU-uuid/gpu instance/compute instance";
// the first bad entry ends the list; a device named twice makes it empty.
std::vector<unsigned> visible_devices(std::span<const DeviceInfo> gpus,
                                      std::span<const VisibleInstance> instances,
                                      const DeviceChoice& choice);

}  // namespace aliquot::simdriver
