#include "interposer/held_table.h"

#include <sys/mman.h>

namespace aliquot::interposer {
namespace {

constexpr std::size_t kFirstCapacity = 128;
constexpr std::size_t kNotThere = static_cast<std::size_t>(-1);

std::uint64_t mixed(std::uint64_t name) { return name * 0x9E3779B97F4A7C15ull; }
// The shard uses the top bits, the place within it those below.
std::size_t home(std::uint64_t name, std::size_t mask) { return (mixed(name) >> 16) & mask; }

std::size_t place_of(const Held* entries, std::size_t capacity, std::uint64_t name) {
  if (capacity == 0) return kNotThere;
  const std::size_t mask = capacity - 1;
  for (std::size_t i = home(name, mask); entries[i].name != 0; i = (i + 1) & mask)
    if (entries[i].name == name) return i;
  return kNotThere;
}

void place(Held* entries, std::size_t capacity, const Held& entry) {
  const std::size_t mask = capacity - 1;
  std::size_t i = home(entry.name, mask);
  while (entries[i].name != 0) i = (i + 1) & mask;
  entries[i] = entry;
}

}  // namespace

HeldTable::Shard& HeldTable::shard_of(std::uint64_t name) {
  return shards_[mixed(name) >> (64 - kShardBits)];
}

bool HeldTable::insert(const Held& entry, Held* replaced) {
  if (entry.name == 0) return false;  // no driver names anything 0
  Shard& shard = shard_of(entry.name);
  const Holding holding(shard.lock);
  if ((shard.count + 1) * 8 > shard.capacity * 5 && !grow(shard)) return false;
  const std::size_t mask = shard.capacity - 1;
  std::size_t i = home(entry.name, mask);
  while (shard.entries[i].name != 0 && shard.entries[i].name != entry.name) i = (i + 1) & mask;
  if (shard.entries[i].name != 0)
    *replaced = shard.entries[i];
  else
    ++shard.count;
  shard.entries[i] = entry;
  return true;
}

Held HeldTable::take(std::uint64_t name) {
  Shard& shard = shard_of(name);
  const Holding holding(shard.lock);
  const std::size_t at = place_of(shard.entries, shard.capacity, name);
  return at == kNotThere ? Held{} : remove_at(shard, at);
}

Held HeldTable::find(std::uint64_t name) {
  Shard& shard = shard_of(name);
  const Holding holding(shard.lock);
  const std::size_t at = place_of(shard.entries, shard.capacity, name);
  return at == kNotThere ? Held{} : shard.entries[at];
}

Held HeldTable::take_any(bool (*matches)(const Held&, std::uint64_t), std::uint64_t argument) {
  for (Shard& shard : shards_) {
    const Holding holding(shard.lock);
    for (std::size_t i = 0; i < shard.capacity; ++i)
      if (shard.entries[i].name != 0 && matches(shard.entries[i], argument))
        return remove_at(shard, i);
  }
  return {};
}

std::size_t HeldTable::size() {
  std::size_t sum = 0;
  for (Shard& shard : shards_) {
    const Holding holding(shard.lock);
    sum += shard.count;
  }
  return sum;
}

void HeldTable::forget_all() {
  for (Shard& shard : shards_) {
    // The parent's other threads may have held the lock, and may have been half way through.
    shard.lock.reset();
    if (shard.entries != nullptr) munmap(shard.entries, shard.capacity * sizeof(Held));
    shard.entries = nullptr;
    shard.capacity = shard.count = 0;
  }
}

// Entries behind the gap move up unless they would pass their home.
Held HeldTable::remove_at(Shard& shard, std::size_t at) {
  const std::size_t mask = shard.capacity - 1;
  const Held taken = shard.entries[at];
  std::size_t gap = at;
  for (std::size_t i = (at + 1) & mask; shard.entries[i].name != 0; i = (i + 1) & mask) {
    const std::size_t wants = home(shard.entries[i].name, mask);
    if (((i - wants) & mask) >= ((i - gap) & mask)) {
      shard.entries[gap] = shard.entries[i];
      gap = i;
    }
  }
  shard.entries[gap] = Held{};
  --shard.count;
  return taken;
}

bool HeldTable::grow(Shard& shard) {
  const std::size_t capacity = shard.capacity == 0 ? kFirstCapacity : shard.capacity * 2;
  void* memory = mmap(nullptr, capacity * sizeof(Held), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  auto* entries = static_cast<Held*>(memory);
  for (std::size_t i = 0; i < shard.capacity; ++i)
    if (shard.entries[i].name != 0) place(entries, capacity, shard.entries[i]);
  if (shard.entries != nullptr) munmap(shard.entries, shard.capacity * sizeof(Held));
  shard.entries = entries;
  shard.capacity = capacity;
  return true;
}

}  // namespace aliquot::interposer
