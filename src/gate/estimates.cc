#include "gate/estimates.h"

namespace aliquot::gate {

// The key's entry, else a free one, else the one it will push out.
std::size_t Estimates::place_of(std::uint64_t key) const {
  const std::size_t first = key % kEntries;
  std::size_t free = kEntries;
  for (std::size_t i = 0; i < kProbes; ++i) {
    const std::size_t at = (first + i) % kEntries;
    const std::uint64_t there = load(entries_[at].key);
    if (there == key) return at;
    if (there == 0 && free == kEntries) free = at;
  }
  return free != kEntries ? free : (first + (key >> 32) % kProbes) % kEntries;
}

void Estimates::measured(std::uint64_t key, Nanoseconds duration_ns) {
  Entry& entry = entries_[place_of(key)];
  const float ns = duration_ns > 0 ? static_cast<float>(duration_ns) : 1.0F;
  Value value{.duration = ns, .deviation = 0};
  const bool known = entry.key == key;
  if (known) {
    const auto before = std::bit_cast<Value>(entry.value);
    const float off = ns > before.duration ? ns - before.duration : before.duration - ns;
    value = {.duration = 0.8F * before.duration + 0.2F * ns,
             .deviation = 0.9F * before.deviation + 0.1F * off};
    // What was measured once may have begun behind somebody else's work.
    if (before.deviation == 0 && ns < before.duration) value = {.duration = ns, .deviation = 0};
  }
  __atomic_store_n(&entry.value, std::bit_cast<std::uint64_t>(value), __ATOMIC_RELAXED);
  __atomic_store_n(&entry.key, key, __ATOMIC_RELAXED);
  longest_ *= 0.999;
  if (known && (longest_ < static_cast<double>(value.duration) || key == longest_key_)) {
    longest_ = static_cast<double>(value.duration);
    longest_key_ = key;
  }
}

}  // namespace aliquot::gate
