// What the broker sees of the GPUs, through NVML. Probes: one thread at a time; their source: any.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "broker/admission.h"
#include "broker/gpu_probe.h"
#include "inventory/nvml.h"
#include "topology/shape.h"

namespace aliquot::cli {

// What is known of a machine beyond what NVML says.
struct MachineFacts {
  // Beside the GPUs in PCI order; empty (a real machine, shared with other users):
  // assumed_context_overhead_bytes.
  std::vector<std::uint64_t> context_bytes;
  std::uint64_t time_scale_micro = 1'000'000;  // below: a simulated machine in slow motion
};

class NvmlGpuProbe final : public broker::GpuProbe {
 public:
  NvmlGpuProbe(std::unique_ptr<inventory::Nvml> nvml, MachineFacts facts)
      : nvml_(std::move(nvml)), facts_(std::move(facts)) {}

  Result<std::vector<broker::ProbedGpu>> gpus() override;
  Result<std::vector<broker::ProbedUse>> use(std::uint32_t gpu, std::uint64_t after_us) override;
  bool is_machine_wide() const override { return facts_.context_bytes.empty(); }

 private:
  std::unique_ptr<inventory::Nvml> nvml_;
  MachineFacts facts_;
};

// Drivers by the names of inventory::Driver; a simulated machine's context overhead is its own.
// Remembers how the GPUs it has seen are linked, so that it can choose those that belong together.
class DriverProbeSource final : public broker::ProbeSource {
 public:
  Result<std::unique_ptr<broker::GpuProbe>> open(const std::string& driver) override;

  // A broker::Chooser: several GPUs by topology, one (or GPUs of which no links are known) by least
  // room.
  std::vector<std::size_t> choose(const std::vector<broker::RoomRow>& fitting, std::size_t count);

 private:
  std::mutex mutex_;  // a driver is opened on a thread of its own
  std::unordered_map<std::string, topology::Shape> shape_of_;  // by the UUID of a GPU on the node
};

}  // namespace aliquot::cli
