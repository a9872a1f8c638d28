// What NVML says of one GPU's MIG. A part of nvml.cc. Any thread.
#pragma once

#include "inventory/nvml.h"
#include "inventory/nvml_library.h"

namespace aliquot::inventory {

// A GPU without MIG has no profiles; instances can be listed only where MIG is on.
Result<NvmlMig> read_mig(const NvmlLibrary& library, nvmlDevice_t device);

}  // namespace aliquot::inventory
