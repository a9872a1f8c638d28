#include "scheduler/share_state.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace aliquot::scheduler {

bool ShareState::operator==(const ShareState& other) const {
  return shape == other.shape && cpu_milli == other.cpu_milli && gpus == other.gpus &&
         free == other.free;
}

int ShareState::total() const { return std::accumulate(free.begin(), free.begin() + gpus, 0); }

void ShareState::take(int at, int milli) {
  auto i = static_cast<std::size_t>(at);
  const auto left = static_cast<std::int16_t>(free[i] - milli);
  for (; i > 0 && free[i - 1] > left; --i) free[i] = free[i - 1];
  free[i] = left;
}

std::uint64_t hash_of(const ShareState& state) {
  constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15ULL;
  std::uint64_t h = (static_cast<std::uint64_t>(static_cast<std::uint32_t>(state.shape)) << 32 ^
                     static_cast<std::uint32_t>(state.cpu_milli)) *
                    kOdd;
  for (std::size_t i = 0; i < static_cast<std::size_t>(state.gpus); i += 4) {
    std::uint64_t word = 0;
    for (std::size_t j = i; j < i + 4; ++j)
      word = word << 16 | static_cast<std::uint16_t>(state.free[j]);
    h = (h ^ word ^ h >> 31) * kOdd;
  }
  return h ^ h >> 32;
}

ShareState share_state_of(const NodeView& view) {
  ShareState state;
  state.shape = static_cast<std::int32_t>(view.state.shape);
  state.cpu_milli = view.state.cpu_milli;
  state.gpus = view.state.gpu_count;
  for (int i = 0; i < state.gpus; ++i)
    state.free[static_cast<std::size_t>(i)] =
        static_cast<std::int16_t>(view.state.free_milli(i, view.shape));
  std::sort(state.free.begin(), state.free.begin() + state.gpus);
  return state;
}

std::size_t ShareMemo::slot_for(const ShareState& state) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = hash_of(state) & mask;
  while (slots_[at].used && !(slots_[at].state == state)) at = (at + 1) & mask;
  return at;
}

const std::int64_t* ShareMemo::find(const ShareState& state) const {
  const Slot& slot = slots_[slot_for(state)];
  return slot.used ? &slot.value : nullptr;
}

void ShareMemo::insert(const ShareState& state, std::int64_t value) {
  if (used_ >= kMost) {
    slots_.assign(1024, {});
    used_ = 0;
  }
  if (2 * (used_ + 1) > slots_.size()) {
    std::vector<Slot> old(2 * slots_.size());
    std::swap(old, slots_);
    for (const Slot& slot : old)
      if (slot.used) slots_[slot_for(slot.state)] = slot;
  }
  Slot& slot = slots_[slot_for(state)];
  used_ += slot.used ? 0 : 1;
  slot = {state, value, true};
}

}  // namespace aliquot::scheduler
