#include "scheduler/mig.h"

#include <algorithm>
#include <bit>
#include <tuple>

namespace aliquot::scheduler {
namespace {

std::uint8_t mask_at(const model::MigProfile& profile, int start) {
  return static_cast<std::uint8_t>(((1u << profile.slices) - 1) << start);
}

// How many placements stay legal, each counted by its size.
int openness(const NodeShape& shape, std::uint8_t used) {
  int open = 0;
  for (const model::MigProfile& profile : shape.mig_profiles)
    for (const int start : profile.starts)
      if ((mask_at(profile, start) & used) == 0) open += profile.slices;
  return open;
}

}  // namespace

const model::MigProfile* mig_profile(const NodeShape& shape, std::string_view name) {
  for (const model::MigProfile& profile : shape.mig_profiles)
    if (profile.name == name) return &profile;
  return nullptr;
}

std::vector<MigSlice> choose_slices(const NodeView& view, const Ask& ask) {
  const model::MigProfile* profile = mig_profile(view.shape, ask.mig_profile);
  if (profile == nullptr) return {};
  std::vector<MigSlice> slices;
  std::array<std::uint8_t, model::kMaxGpusPerNode> used{};
  for (int i = 0; i < view.state.gpu_count; ++i)
    used[static_cast<std::size_t>(i)] = view.state.gpus[static_cast<std::size_t>(i)].mig_used;
  for (int unit = 0; unit < ask.count; ++unit) {
    // (slices used, placements left open, then the first GPU and start): the largest wins.
    std::tuple<int, int, int, int> best{-1, 0, 0, 0};
    MigSlice slice;
    for (int i = 0; i < view.state.gpu_count; ++i) {
      const std::uint8_t taken = used[static_cast<std::size_t>(i)];
      if (!view.state.gpus[static_cast<std::size_t>(i)].mig) continue;
      for (const int start : profile->starts) {
        const std::uint8_t mask = mask_at(*profile, start);
        if ((taken & mask) != 0) continue;
        const auto rank =
            std::tuple(std::popcount(taken),
                       openness(view.shape, static_cast<std::uint8_t>(taken | mask)), -i, -start);
        if (rank > best) best = rank, slice = {i, mask};
      }
    }
    if (std::get<0>(best) < 0) return {};
    used[static_cast<std::size_t>(slice.gpu)] |= slice.mask;
    slices.push_back(slice);
  }
  return slices;
}

}  // namespace aliquot::scheduler
