#include "simdriver/nvml/instance_handles.h"

#include <algorithm>

namespace aliquot::simdriver::nvml {
namespace {

// Where `wanted` stands in the list; put there first if it does not.
template <typename T>
T* interned(std::deque<T>& list, const T& wanted) {
  const auto found = std::ranges::find(list, wanted);
  return found == list.end() ? &list.emplace_back(wanted) : &*found;
}

template <typename T>
std::optional<T> found_at(const std::deque<T>& list, const void* handle) {
  for (const T& known : list)
    if (&known == handle) return known;
  return std::nullopt;
}

}  // namespace

InstanceHandles& InstanceHandles::instance() {
  static InstanceHandles& handles =
      *new InstanceHandles;  // NOLINT(cppcoreguidelines-owning-memory): outlives atexit handlers
  return handles;
}

nvmlGpuInstance_t InstanceHandles::gpu_instance(const nvmlGpuInstance_st& wanted) {
  const std::lock_guard lock(mutex_);
  return interned(gpu_instances_, wanted);
}

nvmlComputeInstance_t InstanceHandles::compute_instance(const nvmlComputeInstance_st& wanted) {
  const std::lock_guard lock(mutex_);
  return interned(compute_instances_, wanted);
}

nvmlDevice_t InstanceHandles::device(const nvmlComputeInstance_st& wanted) {
  const std::lock_guard lock(mutex_);
  // Programs never look inside a handle, and neither do we without knowing its list.
  return reinterpret_cast<nvmlDevice_t>(interned(devices_, wanted));
}

std::optional<nvmlGpuInstance_st> InstanceHandles::find(nvmlGpuInstance_t handle) {
  const std::lock_guard lock(mutex_);
  return found_at(gpu_instances_, handle);
}

std::optional<nvmlComputeInstance_st> InstanceHandles::find(nvmlComputeInstance_t handle) {
  const std::lock_guard lock(mutex_);
  return found_at(compute_instances_, handle);
}

std::optional<nvmlComputeInstance_st> InstanceHandles::find_device(nvmlDevice_t handle) {
  const std::lock_guard lock(mutex_);
  return found_at(devices_, handle);
}

}  // namespace aliquot::simdriver::nvml
