#include "simdriver/machine_validity.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <tuple>

#include "simdriver/cpu_list.h"
#include "simdriver/telemetry.h"

namespace aliquot::simdriver {
namespace {

constexpr std::uint32_t kSlowest = kRealTime / 1000;

Error fault(std::string_view where, const std::string& what) {
  return Error{Errc::kInvalid, std::string(where) + ": " + what};
}

std::string gpu_name(std::size_t gpu) { return "gpus[" + std::to_string(gpu) + "]"; }

Status check_gpus(const MachineSpec& machine, std::string_view where) {
  if (machine.gpus.empty() || machine.gpus.size() > kMostGpus)
    return fault(where, "gpus: expected 1 to 64 of them");
  std::set<Uuid> uuids;
  std::set<unsigned> minors;
  for (std::size_t i = 0; i < machine.gpus.size(); ++i) {
    const GpuSpec& gpu = machine.gpus[i];
    if (gpu.numa < -1 || gpu.numa >= static_cast<int>(machine.numa.size()))
      return fault(where, gpu_name(i) + ".numa: no such node");
    if (gpu.uuid != Uuid{} && !uuids.insert(gpu.uuid).second)
      return fault(where, gpu_name(i) + ".uuid: another GPU has it");
    if (!minors.insert(gpu.minor).second)
      return fault(where, gpu_name(i) + ".minor: another GPU has it");
    const auto key = [](const PciAddress& a) { return std::tuple(a.domain, a.bus, a.device); };
    if (i > 0 && key(machine.gpus[i - 1].pci) >= key(gpu.pci))
      return fault(where, gpu_name(i) + ".pci: GPUs stand in ascending PCI order");
  }
  return {};
}

template <typename T>
Status check_matrix(const std::vector<std::vector<T>>& matrix, std::size_t size,
                    const std::string& what) {
  if (matrix.size() != size) return fault(what, "expected one row a GPU");
  for (std::size_t a = 0; a < size; ++a)
    if (matrix[a].size() != size) return fault(what, "expected one word a GPU in each row");
  for (std::size_t a = 0; a < size; ++a)
    for (std::size_t b = 0; b < size; ++b) {
      if (matrix[a][b] != matrix[b][a]) return fault(what, "expected the same both ways");
      if ((a == b) != (matrix[a][b] == T{}) && std::is_same_v<T, PciePath>)
        return fault(what, "expected X on the diagonal, and only there");
    }
  return {};
}

Status check_links(const MachineSpec& machine, std::string_view where) {
  const std::size_t size = machine.gpus.size();
  const std::string prefix(where);
  if (Status status = check_matrix(machine.pcie, size, prefix + ": pcie"); !status) return status;
  if (Status status = check_matrix(machine.nvlinks, size, prefix + ": nvlinks"); !status)
    return status;
  for (unsigned gpu = 0; gpu < size; ++gpu) {
    const std::vector<unsigned>& row = machine.nvlinks[gpu];
    const unsigned used = machine.nvswitch ? *std::ranges::max_element(row)
                                           : std::accumulate(row.begin(), row.end(), 0u);
    if (row[gpu] != 0 || used > machine.model_of(gpu).nvlink.links)
      return fault(where, "nvlinks: " + gpu_name(gpu) + " has only " +
                              std::to_string(machine.model_of(gpu).nvlink.links) + " links");
  }
  for (const Nic& nic : machine.nics)
    if (nic.to_gpu.size() != size)
      return fault(where, "nics: " + nic.name + ": expected one word a GPU");
  return {};
}

}  // namespace

Status check_model(const GpuModel& model, std::string_view where) {
  const MemorySizes& memory = model.memory;
  if (model.sms == 0 || model.cores_per_sm == 0 || model.copy_engines == 0)
    return fault(where, "sms, cores_per_sm, copy_engines: at least 1");
  if (memory.driver_total_bytes >= memory.nvml_total_bytes)
    return fault(where, "memory: driver_total_bytes must be below nvml_total_bytes");
  if (memory.context_bytes >= memory.driver_total_bytes)
    return fault(where, "memory: context_bytes must be below driver_total_bytes");
  const Clocks& clocks = model.clocks;
  if (clocks.graphics_step_mhz == 0 || clocks.graphics_min_mhz > clocks.graphics_default_mhz ||
      clocks.graphics_default_mhz > clocks.graphics_max_mhz)
    return fault(where, "clocks: expected graphics min <= default <= max, and a step");
  const Power& power = model.power;
  if (power.limit_min_mw > power.limit_default_mw || power.limit_default_mw > power.limit_max_mw ||
      power.idle_mw >= power.limit_default_mw)
    return fault(where, "power: expected min <= default <= max, and idle below default");
  if (model.pcie.generation == 0 || model.pcie.width == 0 || model.pcie.host_gbytes_per_s <= 0)
    return fault(where, "pcie: generation, width and rate must be above 0");
  if ((model.nvlink.version == 0) != (model.nvlink.links == 0))
    return fault(where, "nvlink: version and links are both 0 or neither");
  if (model.nvlink.links > kMostNvlinks)
    return fault(where, "nvlink: at most " + std::to_string(kMostNvlinks) + " links");
  if (model.timing.time_slice_ns == 0 || model.timing.utilisation_period_ns == 0)
    return fault(where, "timing: time_slice_ns and utilisation_period_ns must be above 0");
  return {};
}

Status check_machine(const MachineSpec& machine, std::string_view where) {
  for (const GpuModel& model : machine.models)
    if (Status status = check_model(model, std::string(where) + ": models: " + model.name); !status)
      return status;
  for (const NumaNode& node : machine.numa)
    if (auto cpus = parse_cpu_list(node.cpus); !cpus)
      return fault(where, "numa: " + cpus.error().message);
  if (machine.time_scale_micro < kSlowest || machine.time_scale_micro > kRealTime)
    return fault(where, "time_scale_micro: expected 1000 to 1000000 (real time)");
  if (Status status = check_gpus(machine, where); !status) return status;
  return check_links(machine, where);
}

}  // namespace aliquot::simdriver
