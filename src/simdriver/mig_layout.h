// How one GPU is cut by MIG: GPU instances on memory slots, compute instances on their slices.
//
// The rules are those of NVIDIA's MIG guide: an instance starts where its profile may, slots do not
// overlap, compute slices add up to at most the product's, a profile has a most, and one instance
// has the media engines. Leaves to others: who may change it, handles, UUIDs. Pure; one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "simdriver/machine_spec.h"

namespace aliquot::simdriver {

struct GpuInstance {
  unsigned id = 0;
  unsigned profile = 0;  // MigProfile::id
  unsigned start = 0;    // memory slots
  unsigned size = 0;
  bool operator==(const GpuInstance&) const = default;
};

struct ComputeInstance {
  unsigned id = 0;            // within its GPU instance
  unsigned gpu_instance = 0;  // its id
  unsigned start = 0;         // compute slices of the GPU instance
  unsigned slices = 0;
  bool operator==(const ComputeInstance&) const = default;
};

enum class MigResult : std::uint8_t { kDone, kOff, kNoSuch, kNoRoom, kInUse };

class MigLayout {
 public:
  explicit MigLayout(std::vector<MigProfile> profiles) : profiles_(std::move(profiles)) {}

  bool capable() const { return !profiles_.empty(); }
  bool on() const { return on_; }
  const std::vector<GpuInstance>& gpu_instances() const { return gpu_instances_; }
  const std::vector<ComputeInstance>& compute_instances() const { return compute_instances_; }

  // kInUse while there are instances.
  MigResult switch_mode(bool on);
  // Without `start`, the first place that fits. `id` is that of the new instance.
  MigResult create(unsigned profile, std::optional<unsigned> start, unsigned& id);
  MigResult destroy(unsigned gpu_instance);
  MigResult create_compute(unsigned gpu_instance, unsigned slices, unsigned& id);
  MigResult destroy_compute(unsigned gpu_instance, unsigned id);

  // How many more instances of the profile fit.
  unsigned remaining(unsigned profile) const;
  const MigProfile* profile(unsigned id) const;

 private:
  unsigned total_slices() const;
  bool fits(const MigProfile& profile, unsigned start) const;
  std::optional<unsigned> first_fit(const MigProfile& profile) const;

  std::vector<MigProfile> profiles_;
  bool on_ = false;
  std::vector<GpuInstance> gpu_instances_;
  std::vector<ComputeInstance> compute_instances_;
};

}  // namespace aliquot::simdriver
