#include "cli/gpu_probe.h"

#include "cli/surroundings.h"
#include "simdriver/presets.h"
#include "topology/search.h"

namespace aliquot::cli {

Result<std::vector<broker::ProbedGpu>> NvmlGpuProbe::gpus() {
  const auto gpus = nvml_->gpus();
  if (!gpus) return gpus.error();
  std::vector<broker::ProbedGpu> probed;
  for (std::size_t i = 0; i < gpus->size(); ++i) {
    const inventory::NvmlGpu& gpu = (*gpus)[i];
    const auto state = nvml_->state(static_cast<unsigned>(i));
    broker::ProbedGpu row;
    row.uuid = gpu.uuid;
    row.name = gpu.name;
    row.bus_id = gpu.bus_id;
    if (!state) {
      // It keeps its place in the order but has no room; the others are served.
      row.trouble = state.error().message;
      probed.push_back(std::move(row));
      continue;
    }
    // The driver's own part is nobody's to share.
    row.total_bytes = state->memory.total_bytes - state->memory.reserved_bytes;
    row.free_bytes = state->memory.free_bytes;
    row.context_overhead_bytes = i < facts_.context_bytes.size()
                                     ? facts_.context_bytes[i]
                                     : inventory::assumed_context_overhead_bytes(gpu);
    row.time_scale_micro = facts_.time_scale_micro;
    for (const inventory::NvmlProcess& process : state->processes)
      row.processes.push_back({process.pid, process.bytes.value_or(0)});
    probed.push_back(std::move(row));
  }
  return probed;
}

Result<std::vector<broker::ProbedUse>> NvmlGpuProbe::use(std::uint32_t gpu,
                                                         std::uint64_t after_us) {
  const auto samples = nvml_->use(gpu, after_us);
  if (!samples) return samples.error();
  std::vector<broker::ProbedUse> use;
  for (const inventory::NvmlUse& sample : *samples)
    use.push_back({sample.pid, sample.at_us, static_cast<double>(sample.percent)});
  return use;
}

Result<std::unique_ptr<broker::GpuProbe>> DriverProbeSource::open(const std::string& name) {
  const auto driver = inventory::driver_called(name, driver_question(""));
  if (!driver) return driver.error();
  MachineFacts facts;
  if (driver->simulated()) {
    const auto machine = simdriver::read_machine(driver->machine_directory / "machine.json");
    if (!machine) return machine.error();
    for (unsigned i = 0; i < machine->gpus.size(); ++i)
      facts.context_bytes.push_back(machine->model_of(i).memory.context_bytes);
    facts.time_scale_micro = machine->time_scale_micro;
  }
  auto nvml = inventory::open_nvml(driver->libnvidia_ml);
  if (!nvml) return nvml.error();
  // A machine whose links cannot be read is shared all the same, by least room.
  const auto gpus = (*nvml)->gpus();
  const auto node = inventory::topology_from(**nvml);
  if (gpus && node)
    if (const auto shape = topology::Shape::of(*node)) {
      const std::lock_guard lock(mutex_);
      for (const inventory::NvmlGpu& gpu : *gpus) shape_of_.insert_or_assign(gpu.uuid, *shape);
    }
  return std::unique_ptr<broker::GpuProbe>(
      std::make_unique<NvmlGpuProbe>(*std::move(nvml), std::move(facts)));
}

std::vector<std::size_t> DriverProbeSource::choose(const std::vector<broker::RoomRow>& fitting,
                                                   std::size_t count) {
  const std::lock_guard lock(mutex_);
  const auto shape = shape_of_.find(fitting.front().uuid);
  if (count == 1 || shape == shape_of_.end()) return broker::least_room(fitting, count);
  topology::Request request;
  request.count = static_cast<unsigned>(count);
  for (const broker::RoomRow& row : fitting) request.free.insert(row.index);
  const auto best = topology::best_set(shape->second, request);
  if (!best) return broker::least_room(fitting, count);
  std::vector<std::size_t> chosen;
  for (std::size_t i = 0; i < fitting.size(); ++i)
    if (best->contains(fitting[i].index)) chosen.push_back(i);
  return chosen;
}

}  // namespace aliquot::cli
