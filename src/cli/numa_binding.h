// `aliquot run --numa near`: a command's CPUs and memory on the NUMA nodes of its share's GPUs.
//
// near_gpus() reads /sys below its root and forks nothing; bind_here() changes the calling process,
// for the exec that follows: both settings are inherited, a program may change them again. One
// thread.
#pragma once

#include <string>
#include <vector>

#include "common/result.h"
#include "inventory/nvml.h"
#include "inventory/sysfs.h"

namespace aliquot::cli {

struct NumaBinding {
  std::vector<unsigned> nodes;         // ascending
  std::vector<unsigned> memory_nodes;  // of them those that have memory
  std::vector<unsigned> cpus;          // of them all, ascending
  bool operator==(const NumaBinding&) const = default;
};

// An error where the machine does not tell the node of one of the GPUs, or its CPUs.
Result<NumaBinding> near_gpus(const std::vector<inventory::NvmlGpu>& gpus,
                              const inventory::Sysfs& sys);

// CPUs: those of the binding that this process may use; an error when there are none. Memory: from
// these nodes alone, as `numactl --membind`.
Status bind_here(const NumaBinding& binding);

}  // namespace aliquot::cli
