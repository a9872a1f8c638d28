// The machine around the GPUs: kernel, hypervisor, NUMA nodes, what MPS left or runs.
//
// `sys` and `proc` are the roots of /sys and /proc, so that a test lays out its own. Any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "inventory/sysfs.h"

namespace aliquot::inventory {

struct NumaNode {
  int node = 0;
  std::string cpus;                 // "0-23,48-71"
  std::uint64_t memory_bytes = 0;   // 0: a node without memory
  std::vector<unsigned> distances;  // to every node, itself 10 (ACPI SLIT)
  bool operator==(const NumaNode&) const = default;
};

struct Host {
  std::string kernel;      // "6.1.0-18-amd64"
  std::string hypervisor;  // "KVM", ...; "unknown" when it does not say; empty: bare metal
  std::string product;     // the board's or cloud's name for the machine
  std::vector<NumaNode> numa;
  bool operator==(const Host&) const = default;
};

// MPS as it is found in its pipe directory.
enum class MpsState : std::uint8_t {
  kNone,
  kRuns,
  kLeftover,  // its files are there, its control daemon is not: clients hang or fail
};

Host read_host(const Sysfs& sys, const Sysfs& proc);
MpsState read_mps(const std::filesystem::path& pipe_directory, const Sysfs& proc);

std::string_view name_of(MpsState state);

}  // namespace aliquot::inventory
