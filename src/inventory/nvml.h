// Nvml: what a driver says of its GPUs, over libnvidia-ml (real, simulated or a share's view).
//
// Figures a GPU does not have (fans of a passively cooled one, ECC of a consumer card) are
// nullopt, never zero. An error names the NVML call and the driver's own words. Leaves to others:
// which driver (driver_choice.h), the graph of links (topology), judging health.
//
// Calls may take milliseconds and, on a broken driver, long. What asks about one GPU may be called
// by several threads, as NVML may; wait_for_xid() by one at a time. The twin: one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/result.h"
#include "inventory/health.h"
#include "model/topology.h"

namespace aliquot::inventory {

struct NvmlSystem {
  std::string driver_version;  // "580.65.06"
  std::string nvml_version;    // "13.580.65.06"
  int cuda_version = 0;        // 13000
  bool operator==(const NvmlSystem&) const = default;
};

// What of a GPU stays as it is.
struct NvmlGpu {
  std::string uuid;    // "GPU-8-4-4-4-12"
  std::string name;    // "NVIDIA A100-SXM4-80GB"
  std::string bus_id;  // "00000000:07:00.0"
  std::string serial;  // empty: the product has none
  unsigned minor = 0;  // /dev/nvidiaMINOR
  std::optional<int> numa;
  std::string cpus;  // Linux list of the nearest CPUs; empty: not told
  int compute_major = 0;
  int compute_minor = 0;
  unsigned pcie_max_generation = 0;
  unsigned pcie_max_width = 0;
  bool mig_capable = false;
  // "none", "passthrough", "vgpu" (a guest's), "host-vgpu", "host-vsga"; empty: not told
  std::string virtualization;
  bool operator==(const NvmlGpu&) const = default;
};

enum class ProcessKind : std::uint8_t { kCompute, kGraphics, kMps };

struct NvmlProcess {
  std::int32_t pid = 0;  // as the driver counts: in the host's pid namespace
  std::optional<std::uint64_t> bytes;
  ProcessKind kind = ProcessKind::kCompute;
  bool operator==(const NvmlProcess&) const = default;
};

struct NvmlMemory {
  std::uint64_t total_bytes = 0;
  std::uint64_t reserved_bytes = 0;  // the driver's own; part of total, not of used
  std::uint64_t used_bytes = 0;
  std::uint64_t free_bytes = 0;
  bool operator==(const NvmlMemory&) const = default;
};

// What of a GPU changes.
struct NvmlState {
  NvmlMemory memory;
  std::vector<NvmlProcess> processes;
  std::optional<unsigned> gpu_percent;     // of the last sample period, a kernel ran
  std::optional<unsigned> memory_percent;  // of it, device memory was read or written
  std::optional<unsigned> power_mw;
  std::optional<unsigned> power_limit_mw;
  std::optional<std::uint64_t> energy_mj;  // since the driver was loaded; Volta and newer
  std::optional<unsigned> temperature_c;
  std::optional<unsigned> fan_percent;
  std::optional<unsigned> sm_mhz;
  std::optional<unsigned> sm_max_mhz;
  std::optional<unsigned> memory_mhz;
  std::optional<std::uint64_t> clock_reasons;  // why clocks are not higher: nvmlClocksEventReason*
  std::optional<unsigned> performance_state;   // 0 is fastest
  std::optional<unsigned> pcie_generation;
  std::optional<unsigned> pcie_width;
  std::optional<bool> persistence;
  std::optional<bool> ecc;
  std::optional<std::uint64_t> ecc_uncorrected;  // since the driver was loaded
  std::optional<bool> mig;
  std::optional<std::uint64_t> bar1_bytes;  // the window through which others reach its memory
  std::optional<std::uint64_t> bar1_used_bytes;
  unsigned compute_mode = 0;  // 0 default, 2 prohibited, 3 exclusive process
  bool operator==(const NvmlState&) const = default;
};

// The part of it that decides what else fits, for whoever asks often.
struct NvmlHeld {
  NvmlMemory memory;
  std::vector<NvmlProcess> processes;
  bool operator==(const NvmlHeld&) const = default;
};

// One end of an NVLink: state of link `link` of a GPU.
struct NvmlNvlink {
  unsigned link = 0;
  bool active = false;
  unsigned generation = 0;    // of NVLink; 0: not told
  unsigned mb_per_s = 0;      // one direction, 10^6 bytes a second; 0: not told
  std::string remote_bus_id;  // of the GPU or switch at the other end
  bool remote_is_switch = false;
  bool operator==(const NvmlNvlink&) const = default;
};

// One profile that GPU instances can have, as `nvidia-smi mig -lgip` lists it.
struct NvmlMigProfile {
  std::string name;  // "MIG 1g.10gb"
  unsigned id = 0;
  unsigned free = 0;  // instances that can still be made
  unsigned total = 0;
  std::uint64_t memory_mib = 0;
  bool p2p = false;
  unsigned multiprocessors = 0;
  unsigned copy_engines = 0;
  unsigned decoders = 0;
  unsigned encoders = 0;
  unsigned jpeg_engines = 0;
  unsigned ofa_engines = 0;
  bool operator==(const NvmlMigProfile&) const = default;
};

struct NvmlMigInstance {
  unsigned gpu_instance = 0;
  std::optional<unsigned> compute_instance;  // of a compute instance, within its GPU instance
  std::string name;                          // its profile's: "MIG 3g.40gb"
  unsigned profile = 0;
  unsigned start = 0;
  unsigned size = 0;
  bool operator==(const NvmlMigInstance&) const = default;
};

// How a GPU can be cut, and is.
struct NvmlMig {
  bool on = false;
  std::vector<NvmlMigProfile> profiles;    // of GPU instances; empty: the product has no MIG
  std::vector<NvmlMigInstance> instances;  // GPU instances, by id
  std::vector<NvmlMigInstance> compute_instances;  // by GPU instance and id
  bool operator==(const NvmlMig&) const = default;
};

// The newest sample of a process: how much of one sample period it had the GPU for.
struct NvmlUse {
  std::int32_t pid = 0;
  std::uint64_t at_us = 0;  // end of the period; microseconds since 1970
  unsigned percent = 0;
  bool operator==(const NvmlUse&) const = default;
};

// GPUs are named by their index, which counts from 0 in PCI order.
class Nvml {
 public:
  virtual ~Nvml() = default;
  virtual Result<NvmlSystem> system() = 0;
  virtual Result<unsigned> count() = 0;
  virtual Result<NvmlGpu> gpu(unsigned gpu) = 0;
  // Of the GPU there. No other is asked: one that is lost or hangs costs only itself.
  virtual Result<unsigned> index_at(const std::string& bus_id) = 0;
  // All of them; fails where one does.
  Result<std::vector<NvmlGpu>> gpus();
  virtual Result<NvmlState> state(unsigned gpu) = 0;
  virtual Result<NvmlHeld> held(unsigned gpu) = 0;
  // What a probe of the GPU's health finds. A GPU that is lost is a reading, not an error.
  virtual Result<HealthReading> health(unsigned gpu) = 0;
  // Of processes that had the GPU in a sample period that ended after `after_us`.
  virtual Result<std::vector<NvmlUse>> use(unsigned gpu, std::uint64_t after_us) = 0;
  // How near two GPUs are on PCIe: kPix .. kSys.
  virtual Result<model::LinkKind> path(unsigned gpu, unsigned other) = 0;
  // Every link that the GPU has; empty where it has no NVLink.
  virtual Result<std::vector<NvmlNvlink>> nvlinks(unsigned gpu) = 0;
  virtual Result<NvmlMig> mig(unsigned gpu) = 0;
  // The GPU's next XID; nullopt when none came in time.
  virtual Result<std::optional<unsigned>> wait_for_xid(unsigned gpu,
                                                       std::chrono::milliseconds limit) = 0;
};

// Loads the library (absolute path) and initialises it; shut down when destroyed.
Result<std::unique_ptr<Nvml>> open_nvml(const std::filesystem::path& libnvidia_ml);

// What one context costs on a GPU of which nothing better is known: by architecture, from what
// users measured (the sources stand beside the figures).
std::uint64_t assumed_context_overhead_bytes(const NvmlGpu& gpu);

// GPU-to-GPU part of what `nvidia-smi topo -m` shows: NVLinks where there are any, else the path.
Result<model::NodeTopology> topology_from(Nvml& nvml);

// The in-memory twin: answers what it was given. An index past its GPUs is kNotFound.
class FakeNvml final : public Nvml {
 public:
  NvmlSystem system_answer{"580.65.06", "13.580.65.06", 13000};
  std::vector<NvmlGpu> gpu_answers;
  std::vector<NvmlState> state_answers;                    // beside gpu_answers
  std::vector<HealthReading> health_answers;               // beside gpu_answers; may be empty
  std::vector<std::vector<model::LinkKind>> path_answers;  // [gpu][other]
  std::vector<std::vector<NvmlNvlink>> nvlink_answers;     // beside gpu_answers; may be empty
  std::vector<NvmlMig> mig_answers;                        // the same
  std::vector<std::vector<NvmlUse>> use_answers;           // beside gpu_answers; may be empty
  std::vector<unsigned> xids;  // given out once, first to last, whichever GPU is asked
  std::optional<Error> fault;  // every call fails with it

  Result<NvmlSystem> system() override;
  Result<unsigned> count() override;
  Result<NvmlGpu> gpu(unsigned gpu) override;
  Result<unsigned> index_at(const std::string& bus_id) override;
  Result<NvmlState> state(unsigned gpu) override;
  Result<NvmlHeld> held(unsigned gpu) override;
  Result<HealthReading> health(unsigned gpu) override;
  Result<std::vector<NvmlUse>> use(unsigned gpu, std::uint64_t after_us) override;
  Result<model::LinkKind> path(unsigned gpu, unsigned other) override;
  Result<std::vector<NvmlNvlink>> nvlinks(unsigned gpu) override;
  Result<NvmlMig> mig(unsigned gpu) override;
  Result<std::optional<unsigned>> wait_for_xid(unsigned gpu,
                                               std::chrono::milliseconds limit) override;
};

}  // namespace aliquot::inventory
