#include "simdriver/nvml/library.h"

namespace aliquot::simdriver::nvml {

Library& Library::instance() {
  // Never destroyed: programs call NVML from atexit handlers and other threads until the end.
  static Library& library = *new Library;  // NOLINT(cppcoreguidelines-owning-memory)
  return library;
}

nvmlReturn_t Library::start(bool need_gpus) {
  const std::unique_lock lock(mutex_);
  if (users_ == 0) {
    const nvmlReturn_t found = find_machine();
    if (found != NVML_SUCCESS) return found;
  }
  if (need_gpus && handles_.empty()) return NVML_ERROR_GPU_NOT_FOUND;
  users_ += 1;
  return NVML_SUCCESS;
}

nvmlReturn_t Library::stop() {
  const std::unique_lock lock(mutex_);
  if (users_ == 0) return NVML_ERROR_UNINITIALIZED;
  users_ -= 1;
  if (users_ == 0 && !machine_given_) telemetry_.reset();
  return NVML_SUCCESS;
}

nvmlReturn_t Library::find_machine() {
  if (!machine_given_) {
    std::optional<Found> found = find_running_machine();
    if (!found) return NVML_ERROR_DRIVER_NOT_LOADED;
    machine_ = std::move(found->machine);
    telemetry_ = std::move(found->telemetry);
  }
  while (handles_.size() < machine_.gpus.size())
    handles_.push_back({static_cast<unsigned>(handles_.size())});
  return NVML_SUCCESS;
}

void Library::use(MachineSpec machine, std::unique_ptr<TelemetrySource> telemetry) {
  const std::unique_lock lock(mutex_);
  machine_ = std::move(machine);
  telemetry_ = std::move(telemetry);
  machine_given_ = true;
  users_ = 0;
  handles_.clear();
}

std::optional<Gpu> Library::Held::gpu(nvmlDevice_t handle) const {
  for (const nvmlDevice_st& known : library_.handles_)
    if (&known == handle) return Gpu{known.gpu, handle, library_.machine_, *library_.telemetry_};
  return std::nullopt;
}

}  // namespace aliquot::simdriver::nvml
