// What a simulated machine is made of: driver version, GPUs, and the links between them.
//
// Values only. Reading and writing them as JSON: machine_json.h; ready-made machines:
// presets.h; CUDA's device attributes computed from a model: device_attributes.h. Where each
// figure comes from, or that it is assumed: docs/simulated-machine.md. Any thread.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace aliquot::simdriver {

// The simulated driver's three version strings. Names younger than `cuda` are absent from it.
struct DriverVersion {
  int cuda = 13000;                   // as cuDriverGetVersion: major * 1000 + minor * 10
  std::string driver = "580.65.06";   // as nvmlSystemGetDriverVersion
  std::string nvml = "13.580.65.06";  // as nvmlSystemGetNVMLVersion
  bool operator==(const DriverVersion&) const = default;
};

struct ComputeCapability {
  int major = 0;
  int minor = 0;
  bool operator==(const ComputeCapability&) const = default;
};

struct MemorySizes {
  std::uint64_t nvml_total_bytes = 0;    // NVML's total, the driver's own part included
  std::uint64_t driver_total_bytes = 0;  // cuDeviceTotalMem: what programs can share
  std::uint64_t context_bytes = 0;       // taken by a process's context before it allocates
  std::uint64_t bar1_bytes = 0;
  unsigned bus_bits = 0;
  unsigned l2_bytes = 0;
  // NVML v2 shows this apart; v1 counts it as used.
  std::uint64_t reserved_bytes() const { return nvml_total_bytes - driver_total_bytes; }
  bool operator==(const MemorySizes&) const = default;
};

struct Clocks {
  unsigned graphics_max_mhz = 0;  // the SM clock is the same
  unsigned graphics_min_mhz = 0;
  unsigned graphics_step_mhz = 15;
  unsigned graphics_default_mhz = 0;  // default application clock
  unsigned memory_max_mhz = 0;
  unsigned memory_idle_mhz = 0;  // equal to the maximum for HBM, which does not scale
  unsigned video_max_mhz = 0;
  bool operator==(const Clocks&) const = default;
};

struct Power {
  unsigned limit_default_mw = 0;
  unsigned limit_min_mw = 0;
  unsigned limit_max_mw = 0;
  unsigned idle_mw = 0;
  bool operator==(const Power&) const = default;
};

struct Temperatures {
  unsigned idle_c = 0;
  unsigned busy_c = 0;      // settles here under full load
  unsigned gpu_max_c = 0;   // software throttling starts
  unsigned slowdown_c = 0;  // hardware throttling starts
  unsigned shutdown_c = 0;
  unsigned memory_max_c = 0;  // 0: no memory sensor
  bool operator==(const Temperatures&) const = default;
};

struct Pcie {
  unsigned generation = 0;
  unsigned width = 0;
  double host_gbytes_per_s = 0;  // measured rate of pinned copies, one direction; 1e9 bytes
  bool operator==(const Pcie&) const = default;
};

struct Nvlink {
  unsigned version = 0;        // generation; 0: none
  unsigned links = 0;          // of one GPU
  unsigned link_mb_per_s = 0;  // one link, one direction
  bool operator==(const Nvlink&) const = default;
};

// What the model of time needs beside durations of kernels; all from facts of real machines.
struct Timing {
  std::uint64_t launch_ns = 0;        // one kernel launch, at the caller
  std::uint64_t start_ns = 0;         // from launch to first block on an idle GPU
  std::uint64_t graph_launch_ns = 0;  // one graph launch
  std::uint64_t graph_node_ns = 0;    // and each node of it
  std::uint64_t alloc_ns = 0;         // cuMemAlloc that needs a new block
  std::uint64_t free_ns = 0;
  std::uint64_t context_create_ns = 0;
  std::uint64_t copy_latency_ns = 0;
  std::uint64_t time_slice_ns = 0;
  std::uint64_t context_switch_ns = 0;
  std::uint64_t utilisation_period_ns = 0;  // NVML's sampling
  bool operator==(const Timing&) const = default;
};

// One GPU-instance profile of MIG, as `nvidia-smi mig -lgip` lists it.
struct MigProfile {
  std::string name;  // "1g.10gb+me"
  unsigned id = 0;
  unsigned compute_slices = 0;
  unsigned memory_slots = 0;
  std::vector<unsigned> starts;  // first memory slot of each placement
  unsigned max_instances = 0;
  unsigned sms = 0;
  std::uint64_t memory_mib = 0;
  unsigned copy_engines = 0;
  unsigned decoders = 0;
  unsigned jpeg_engines = 0;
  unsigned ofa_engines = 0;
  bool operator==(const MigProfile&) const = default;
};

enum class Architecture { kVolta, kTuring, kAmpere, kAda, kHopper, kBlackwell };
enum class Brand { kTesla, kNvidia, kGeforceRtx };

// What all GPUs of one product share.
struct GpuModel {
  std::string name;     // in our files: "a100-sxm4-80gb"
  std::string product;  // as the driver says it: "NVIDIA A100-SXM4-80GB"
  Brand brand = Brand::kNvidia;
  Architecture architecture = Architecture::kAmpere;
  ComputeCapability compute_capability;
  unsigned sms = 0;
  unsigned cores_per_sm = 0;
  unsigned copy_engines = 0;
  unsigned encoders = 0;
  unsigned decoders = 0;
  unsigned fans = 0;
  bool ecc = true;
  bool integrated_cpu = false;      // joined to its CPU by NVLink-C2C
  std::uint32_t pci_device_id = 0;  // as NVML: device in the upper half, 0x10de in the lower
  std::uint32_t pci_subsystem_id = 0;
  std::string board_part;
  std::string vbios;
  MemorySizes memory;
  Clocks clocks;
  Power power;
  Temperatures temperatures;
  Pcie pcie;
  Nvlink nvlink;
  Timing timing;
  std::vector<MigProfile> mig;  // empty: the product has no MIG
  bool operator==(const GpuModel&) const = default;
};

// From Ampere on, memory with ECC has spare rows that stand in for bad ones; before, bad pages are
// retired.
bool remaps_rows(const GpuModel& model);
// Banks of memory, each with kSpareRowsOfBank; as the A100 has them, of others assumed.
unsigned memory_banks(const GpuModel& model);
inline constexpr unsigned kSpareRowsOfBank = 8;

struct PciAddress {
  std::uint32_t domain = 0;
  std::uint8_t bus = 0;
  std::uint8_t device = 0;
  std::string text() const;  // "00000000:07:00.0", as NVML's busId
  bool operator==(const PciAddress&) const = default;
};

using Uuid = std::array<std::uint8_t, 16>;
std::string gpu_uuid_text(const Uuid& uuid);  // "GPU-xxxxxxxx-xxxx-..."

struct GpuSpec {
  unsigned model = 0;  // index into MachineSpec::models
  Uuid uuid{};
  std::string serial;
  PciAddress pci;
  int numa = -1;       // index into MachineSpec::numa; -1: the machine does not say
  unsigned minor = 0;  // /dev/nvidiaMINOR
  bool operator==(const GpuSpec&) const = default;
};

// How far apart two devices are on PCIe, nearest first; the names of `nvidia-smi topo -m`.
enum class PciePath { kSelf, kPix, kPxb, kPhb, kNode, kSys };

struct NumaNode {
  std::string cpus;  // Linux list format: "0-23,48-71"
  bool operator==(const NumaNode&) const = default;
};

struct Nic {
  std::string name;
  std::vector<PciePath> to_gpu;
  bool operator==(const Nic&) const = default;
};

inline constexpr std::uint32_t kRealTime = 1'000'000;

struct MachineSpec {
  std::string name;    // of this machine: "lab"
  std::string preset;  // what it was made from: "a100x8"
  DriverVersion driver;
  std::uint32_t time_scale_micro = kRealTime;  // its time per the host's; slow motion is below
  bool mps = false;  // programs are clients of MPS: side by side instead of in turns
  // How long one block of a kernel runs, by the kernel's name; others: docs/simulated-machine.md.
  std::map<std::string, std::uint64_t, std::less<>> kernel_block_ns;
  std::vector<GpuModel> models;
  std::vector<GpuSpec> gpus;  // in PCI order
  std::vector<NumaNode> numa;
  std::vector<Nic> nics;
  bool nvswitch = false;                       // every NVLink ends in a switch
  std::vector<std::vector<unsigned>> nvlinks;  // [a][b]: links that carry a <-> b
  std::vector<std::vector<PciePath>> pcie;     // [a][b]
  const GpuModel& model_of(unsigned gpu) const { return models[gpus[gpu].model]; }
  bool operator==(const MachineSpec&) const = default;
};

// "13.0" -> that driver; nullptr where no such version can be simulated.
const DriverVersion* driver_for(const std::string& cuda);
// "11.8, 12.4, 12.9, 13.0", for messages.
std::string known_drivers();

}  // namespace aliquot::simdriver
