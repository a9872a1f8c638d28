// What a pod says about its share of GPUs: the assignment that the scheduler wrote with its
// Binding, what the pod asks for itself, and the live change. The texts are in
// docs/formats/assignment.md. Strict: a pod whose words cannot be understood gets an error, never a
// whole GPU.
//
// Leaves to others: which share a container gets in the end (room node). Pure functions; any
// thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"
#include "kube/pod.h"
#include "model/quantity.h"

namespace aliquot::kube {

inline constexpr std::string_view kAssignmentAnnotation = "aliquot.dev/assignment";
inline constexpr std::string_view kMemoryAnnotation = "aliquot.dev/memory";
inline constexpr std::string_view kCoresAnnotation = "aliquot.dev/cores";
inline constexpr std::string_view kShareAnnotation = "aliquot.dev/share";
inline constexpr std::string_view kGpuResource = "aliquot.dev/gpu";
inline constexpr std::string_view kMemoryResource = "aliquot.dev/gpu-memory";  // MiB
inline constexpr std::string_view kCoresResource = "aliquot.dev/gpu-cores";    // percent

// One GPU of one container, as decided.
struct AssignedGpu {
  std::string uuid;                // of the GPU or MIG device, as NVML writes it
  std::uint64_t memory_bytes = 0;  // 1 .. model::kLargestMemory
  std::uint32_t cores = 0;         // 1/100 %; 0: no guarantee
  bool operator==(const AssignedGpu&) const = default;
};

struct ContainerAssignment {
  std::string container;
  std::vector<AssignedGpu> gpus;  // as many as the container has slots
  bool operator==(const ContainerAssignment&) const = default;
};

struct Assignment {
  std::vector<ContainerAssignment> containers;
  // nullptr: that container gets no GPU.
  const ContainerAssignment* of(std::string_view container) const;
  bool operator==(const Assignment&) const = default;
};

Result<Assignment> parse_assignment(std::string_view text);
std::string assignment_text(const Assignment& assignment);

enum class Class : std::uint8_t { kOffline, kOnline };

// What is asked, per GPU of the container. Absent: not said.
struct ShareAsk {
  std::optional<model::MemoryQuantity> memory;
  std::optional<std::uint32_t> cores;   // 1/100 %, 1 .. 10000
  std::optional<std::uint32_t> weight;  // 1 .. 1000
  std::optional<Class> share_class;

  // Neither memory nor cores: the whole GPU is meant.
  bool whole_gpu() const { return !memory && !cores; }
  bool operator==(const ShareAsk&) const = default;
};

// What a bare number of memory in an annotation counts, in bytes. Others mean MiB, GB or blocks of
// 256 MiB by it, so without an administrator's word it is refused.
struct BareMemory {
  std::uint64_t unit_bytes = 0;  // 0: refused
};

// What the pod asks for one of its containers by annotation or, where there is none, by limits.
Result<ShareAsk> ask_of(const Pod& pod, const Container& container, BareMemory bare = {});

// The live change (aliquot.dev/share) for one container; nothing where the pod says none.
Result<std::optional<ShareAsk>> share_change(const Pod& pod, const Container& container,
                                             BareMemory bare = {});

}  // namespace aliquot::kube
