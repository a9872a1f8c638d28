// MIG compute instances as devices of the server: made and ended as the GPU's layout changes.
#include <algorithm>
#include <utility>

#include "simdriver/mig_instance.h"
#include "simdriver/server/machine_state.h"

namespace aliquot::simdriver {

Device::Device(unsigned number_of_it, unsigned gpu_index, GpuModel of_instance, Uuid its_uuid,
               std::shared_ptr<DeviceBooks> of_gpu_instance)
    : number(number_of_it),
      index(gpu_index),
      cut_down(std::move(of_instance)),
      uuid(its_uuid),
      model(*cut_down),
      shared_books(std::move(of_gpu_instance)),
      books(*shared_books),
      timeline(model) {}

Device* MachineState::instance(unsigned gpu, std::uint32_t gpu_instance,
                               std::uint32_t compute_instance) {
  for (auto& device : devices_) {
    if (device->is_instance() && !device->gone && device->index == gpu &&
        device->gpu_instance == gpu_instance && device->compute_instance == compute_instance) {
      return device.get();
    }
  }
  return nullptr;
}

bool MachineState::in_use(const Device& device) const {
  return std::ranges::any_of(
      contexts_, [&](const auto& entry) { return entry.second->device == device.number; });
}

void MachineState::follow_mig(unsigned gpu) {
  const MigLayout& layout = board_.mig(gpu);
  for (auto& device : devices_) {
    if (!device->is_instance() || device->index != gpu || device->gone) continue;
    device->gone = std::ranges::none_of(layout.compute_instances(), [&](const auto& own) {
      return own.gpu_instance == device->gpu_instance && own.id == device->compute_instance;
    });
  }
  for (const ComputeInstance& own : layout.compute_instances()) {
    if (instance(gpu, own.gpu_instance, own.id) != nullptr) continue;
    const GpuInstance& parent =
        *std::ranges::find(layout.gpu_instances(), own.gpu_instance, &GpuInstance::id);
    const GpuModel& whole = devices_[gpu]->model;
    GpuModel part = model_of_instance(whole, *layout.profile(parent.profile), own.slices);
    const auto beside = std::ranges::find_if(devices_, [&](const auto& other) {
      return other->is_instance() && !other->gone && other->index == gpu &&
             other->gpu_instance == parent.id;
    });
    auto books = beside != devices_.end()
                     ? (*beside)->shared_books
                     : std::make_shared<DeviceBooks>(part.memory.driver_total_bytes);
    const auto number = static_cast<unsigned>(devices_.size());
    devices_.push_back(std::make_unique<Device>(number, gpu, std::move(part),
                                                mig_device_uuid(spec_.gpus[gpu].uuid, parent, own),
                                                std::move(books)));
    devices_.back()->gpu_instance = parent.id;
    devices_.back()->compute_instance = own.id;
  }
}

}  // namespace aliquot::simdriver
