#include "simdriver/mig_layout.h"

#include <algorithm>

namespace aliquot::simdriver {
namespace {

bool has_media_extension(const MigProfile& profile) { return profile.name.ends_with("+me"); }

// The smallest number that no element has; ids of instances are given out again.
template <typename Taken>
unsigned free_number(unsigned first, Taken taken) {
  while (taken(first)) first += 1;
  return first;
}

}  // namespace

const MigProfile* MigLayout::profile(unsigned id) const {
  const auto found = std::ranges::find(profiles_, id, &MigProfile::id);
  return found == profiles_.end() ? nullptr : &*found;
}

unsigned MigLayout::total_slices() const {
  unsigned most = 0;
  for (const MigProfile& known : profiles_) most = std::max(most, known.compute_slices);
  return most;
}

bool MigLayout::fits(const MigProfile& wanted, unsigned start) const {
  if (std::ranges::find(wanted.starts, start) == wanted.starts.end()) return false;
  unsigned slices = wanted.compute_slices;
  unsigned alike = 0;
  for (const GpuInstance& instance : gpu_instances_) {
    const MigProfile& other = *profile(instance.profile);
    slices += other.compute_slices;
    alike += instance.profile == wanted.id ? 1 : 0;
    if (has_media_extension(other) && has_media_extension(wanted)) return false;
    if (start < instance.start + instance.size && instance.start < start + wanted.memory_slots)
      return false;
  }
  return slices <= total_slices() && alike < wanted.max_instances;
}

std::optional<unsigned> MigLayout::first_fit(const MigProfile& wanted) const {
  for (const unsigned start : wanted.starts)
    if (fits(wanted, start)) return start;
  return std::nullopt;
}

MigResult MigLayout::switch_mode(bool on) {
  if (!capable()) return MigResult::kOff;
  if (!gpu_instances_.empty() && !on) return MigResult::kInUse;
  on_ = on;
  return MigResult::kDone;
}

MigResult MigLayout::create(unsigned id_of_profile, std::optional<unsigned> start, unsigned& id) {
  if (!on_) return MigResult::kOff;
  const MigProfile* wanted = profile(id_of_profile);
  if (wanted == nullptr) return MigResult::kNoSuch;
  if (!start) start = first_fit(*wanted);
  if (!start || !fits(*wanted, *start)) return MigResult::kNoRoom;
  id = free_number(1, [this](unsigned number) {
    return std::ranges::find(gpu_instances_, number, &GpuInstance::id) != gpu_instances_.end();
  });
  gpu_instances_.push_back({id, id_of_profile, *start, wanted->memory_slots});
  return MigResult::kDone;
}

MigResult MigLayout::destroy(unsigned id) {
  const auto found = std::ranges::find(gpu_instances_, id, &GpuInstance::id);
  if (found == gpu_instances_.end()) return MigResult::kNoSuch;
  if (std::ranges::find(compute_instances_, id, &ComputeInstance::gpu_instance) !=
      compute_instances_.end())
    return MigResult::kInUse;
  gpu_instances_.erase(found);
  return MigResult::kDone;
}

MigResult MigLayout::create_compute(unsigned gpu_instance, unsigned slices, unsigned& id) {
  const auto parent = std::ranges::find(gpu_instances_, gpu_instance, &GpuInstance::id);
  if (parent == gpu_instances_.end()) return MigResult::kNoSuch;
  std::vector<bool> taken(profile(parent->profile)->compute_slices);
  std::vector<bool> ids;
  for (const ComputeInstance& other : compute_instances_) {
    if (other.gpu_instance != gpu_instance) continue;
    for (unsigned i = 0; i < other.slices; ++i) taken[other.start + i] = true;
    ids.resize(std::max<std::size_t>(ids.size(), other.id + 1));
    ids[other.id] = true;
  }
  if (slices == 0) return MigResult::kNoSuch;
  const auto free = std::search_n(taken.begin(), taken.end(), static_cast<int>(slices), false);
  if (free == taken.end()) return MigResult::kNoRoom;
  id = free_number(0, [&](unsigned number) { return number < ids.size() && ids[number]; });
  const auto start = static_cast<unsigned>(free - taken.begin());
  compute_instances_.push_back({id, gpu_instance, start, slices});
  return MigResult::kDone;
}

MigResult MigLayout::destroy_compute(unsigned gpu_instance, unsigned id) {
  const auto found = std::ranges::find_if(compute_instances_, [&](const ComputeInstance& it) {
    return it.gpu_instance == gpu_instance && it.id == id;
  });
  if (found == compute_instances_.end()) return MigResult::kNoSuch;
  compute_instances_.erase(found);
  return MigResult::kDone;
}

unsigned MigLayout::remaining(unsigned id_of_profile) const {
  const MigProfile* wanted = profile(id_of_profile);
  if (!on_ || wanted == nullptr) return 0;
  MigLayout trial = *this;
  unsigned more = 0;
  unsigned id = 0;
  while (trial.create(id_of_profile, std::nullopt, id) == MigResult::kDone) more += 1;
  return more;
}

}  // namespace aliquot::simdriver
