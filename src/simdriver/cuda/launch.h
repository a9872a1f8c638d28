// Kernel launches: how their arguments are packed, how long they take, what the built-in ones
// compute. Under the library's lock.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "simdriver/cuda/modules.h"
#include "simdriver/cuda/operations.h"

namespace aliquot::simdriver {

// Arguments by pointer (`kernel_params`) or as one buffer (`extra`), laid out as the kernel's
// parameters.
CUresult pack_arguments(const KernelImage& kernel, void** kernel_params, void** extra,
                        std::vector<std::byte>& packed);

// The device's and the kernel's limits; `resident`: blocks that fit on a multiprocessor.
CUresult check_launch(Function& function, const LaunchOperation& operation, int& resident);

}  // namespace aliquot::simdriver
