// The doctor: what is wrong with a machine for sharing GPUs, with evidence and a remedy.
//
// look() gathers what can be known without harm: the driver through NVML, each GPU in a process of
// its own with a deadline, sysfs, files, an environment. diagnose() is pure: the same view, the
// same findings. Leaves to others: who holds which share (cli fills `shares`). look() may take its
// deadline; one thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "inventory/document.h"
#include "inventory/driver_choice.h"

namespace aliquot::inventory {

enum class Severity : std::uint8_t { kWarning, kError };

struct FindingKind {
  std::string_view code;
  Severity severity = Severity::kWarning;
  std::string_view what;
  std::string_view remedy;
};
std::span<const FindingKind> finding_kinds();

struct Finding {
  const FindingKind* kind = nullptr;  // in the table, which lives for ever
  std::string subject;                // "GPU 3", "mlx5_0", "" for the whole machine
  std::string evidence;               // what was seen, where
};

// One GPU as it answered, or why it did not.
struct GpuLook {
  unsigned index = 0;
  std::string trouble;  // the driver's words; empty: it answered
  bool hung = false;
  bool denied = false;
  std::string uuid;
  std::string name;  // the product's
  std::string bus_id;
  HealthReading health;
  std::optional<bool> persistence;
  unsigned compute_mode = 0;
  std::uint64_t memory_bytes = 0;
};

// What shares a GPU's memory is promised to, as the broker tells it.
struct SharedGpu {
  std::string uuid;
  std::uint64_t granted_bytes = 0;
  std::uint64_t bypassing_processes = 0;
};

// Files outside /sys and /proc that are looked at; a simulated machine has its own, or none.
struct DoctorPaths {
  Roots roots;
  std::filesystem::path dev = "/dev";
  std::filesystem::path shm = "/dev/shm";
  std::filesystem::path root = "/";  // of the file system whose libraries and CDI specs count
};
DoctorPaths paths_of(const Driver& driver);

struct DoctorView {
  std::string trouble;  // why the driver as a whole did not answer; empty: it did
  bool hung = false;
  bool denied = false;
  NvmlSystem system;
  std::vector<GpuLook> gpus;
  Host host;
  MpsState mps = MpsState::kNone;
  GpuDirect gpu_direct = GpuDirect::kNone;
  std::vector<RdmaDevice> nics;
  std::vector<PciDevice> pci;
  std::string module_version;  // of the kernel's part of the driver; empty: not loaded
  bool nouveau = false;
  // Text that the kernel gives of a RoCE interface, by interface: "0,0,0,1,0,0,0,0".
  std::map<std::string, std::string> pfc;
  std::map<std::string, std::string> ecn;
  std::uint64_t shm_bytes = 0;            // 0: not there
  std::vector<std::string> lost_nodes;    // device nodes that should be there
  std::vector<std::string> denied_nodes;  // that exist but may not be opened
  std::vector<std::string> stale_cdi;     // "SPEC names FILE"
  bool kubelet = false;                   // its directory is there
  bool kubelet_socket = false;
  std::vector<std::string> image_libcudas;  // paths of copies of another version
  std::vector<std::string> forced_compat;   // where a compat directory is named
  std::map<std::string, std::string> environment;
  std::vector<SharedGpu> shares;
};

DoctorView look(const Driver& driver, const DoctorPaths& paths,
                std::map<std::string, std::string> environment);

// In the order of the table; of one kind by subject.
std::vector<Finding> diagnose(const DoctorView& view);

}  // namespace aliquot::inventory
