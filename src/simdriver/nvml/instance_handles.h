// Handles of MIG devices, GPU instances and compute instances: given out once per instance, valid
// for ever as handles (an instance that is gone answers NOT_FOUND). Any thread.
#pragma once

#include <deque>
#include <mutex>
#include <optional>

#include "driver_abi/nvml_types.h"

struct nvmlGpuInstance_st {
  unsigned gpu = 0;
  unsigned id = 0;
  bool operator==(const nvmlGpuInstance_st&) const = default;
};

struct nvmlComputeInstance_st {
  unsigned gpu = 0;
  unsigned gpu_instance = 0;
  unsigned id = 0;
  bool operator==(const nvmlComputeInstance_st&) const = default;
};

namespace aliquot::simdriver::nvml {

class InstanceHandles {
 public:
  static InstanceHandles& instance();

  nvmlGpuInstance_t gpu_instance(const nvmlGpuInstance_st& wanted);
  nvmlComputeInstance_t compute_instance(const nvmlComputeInstance_st& wanted);
  // A MIG device is one compute instance, under the type of a device handle.
  nvmlDevice_t device(const nvmlComputeInstance_st& wanted);

  // Nothing for handles that are not of the kind.
  std::optional<nvmlGpuInstance_st> find(nvmlGpuInstance_t handle);
  std::optional<nvmlComputeInstance_st> find(nvmlComputeInstance_t handle);
  std::optional<nvmlComputeInstance_st> find_device(nvmlDevice_t handle);

 private:
  std::mutex mutex_;
  std::deque<nvmlGpuInstance_st> gpu_instances_;
  std::deque<nvmlComputeInstance_st> compute_instances_;
  std::deque<nvmlComputeInstance_st> devices_;
};

}  // namespace aliquot::simdriver::nvml
