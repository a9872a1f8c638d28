// ShareState: a node's state as fragmentation sees it - CPU and the sorted free part of each GPU -
// small enough to be a key; and ShareMemo, a table of one number per ShareState.
//
// Pure values; any thread. A ShareMemo belongs to one policy.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "scheduler/policy.h"

namespace aliquot::scheduler {

struct ShareState {
  std::int32_t shape = 0;
  std::int32_t cpu_milli = 0;
  std::int32_t gpus = 0;
  // Least room first; only the first `gpus` count, the rest is 0.
  std::array<std::int16_t, model::kMaxGpusPerNode> free{};

  bool operator==(const ShareState& other) const;
  int total() const;
  // The state after `milli` is taken from the GPU that stands at `at`.
  void take(int at, int milli);
};

std::uint64_t hash_of(const ShareState& state);

ShareState share_state_of(const NodeView& view);

class ShareMemo {
 public:
  // Null where nothing is known yet.
  const std::int64_t* find(const ShareState& state) const;
  void insert(const ShareState& state, std::int64_t value);
  std::size_t size() const { return used_; }

 private:
  struct Slot {
    ShareState state;
    std::int64_t value = 0;
    bool used = false;
  };
  static constexpr std::size_t kMost = 1u << 21;  // beyond it the table starts anew

  std::size_t slot_for(const ShareState& state) const;
  std::vector<Slot> slots_ = std::vector<Slot>(1024);
  std::size_t used_ = 0;
};

}  // namespace aliquot::scheduler
