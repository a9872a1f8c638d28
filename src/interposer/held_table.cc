#include "interposer/held_table.h"

#include <sys/mman.h>

namespace aliquot::interposer {
namespace {

constexpr std::size_t kFirstCapacity = 128;

}  // namespace

bool HeldTable::insert(const Held& entry, Held* replaced) {
  if (entry.name == 0) return false;  // no driver names anything 0
  Shard& shard = shard_of(entry.name);
  const Holding holding(shard.lock);
  if (shard.count == shard.most && !shard.grow()) return false;
  Held& at = shard.entries[shard.place_of(entry.name)];
  if (at.name != 0)
    *replaced = at;
  else
    ++shard.count;
  at = entry;
  return true;
}

Held HeldTable::take(std::uint64_t name) {
  Shard& shard = shard_of(name);
  const Holding holding(shard.lock);
  if (shard.count == 0) return {};
  const std::size_t at = shard.place_of(name);
  return shard.entries[at].name == 0 ? Held{} : shard.remove(at);
}

Held HeldTable::find(std::uint64_t name) {
  Shard& shard = shard_of(name);
  const Holding holding(shard.lock);
  if (shard.count == 0) return {};
  const Held& at = shard.entries[shard.place_of(name)];
  return at.name == 0 ? Held{} : at;
}

Held HeldTable::take_any(bool (*matches)(const Held&, std::uint64_t), std::uint64_t argument) {
  for (Shard& shard : shards_) {
    const Holding holding(shard.lock);
    for (std::size_t i = 0; i < shard.capacity(); ++i)
      if (shard.entries[i].name != 0 && matches(shard.entries[i], argument)) return shard.remove(i);
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
    if (shard.entries != nullptr) munmap(shard.entries, shard.capacity() * sizeof(Held));
    shard.entries = nullptr;
    shard.mask = shard.count = shard.most = 0;
  }
}

// Entries behind the gap move up unless they would pass their home.
inline Held HeldTable::Shard::remove(std::size_t at) {
  const Held taken = entries[at];
  std::size_t gap = at;
  for (std::size_t i = (at + 1) & mask; entries[i].name != 0; i = (i + 1) & mask) {
    const std::size_t wants = home(entries[i].name, mask);
    if (((i - wants) & mask) >= ((i - gap) & mask)) {
      entries[gap] = entries[i];
      gap = i;
    }
  }
  entries[gap].name = 0;
  --count;
  return taken;
}

bool HeldTable::Shard::grow() {
  const std::size_t before = capacity();
  const std::size_t places = before == 0 ? kFirstCapacity : before * 2;
  void* memory = mmap(nullptr, places * sizeof(Held), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  Held* old = entries;
  entries = static_cast<Held*>(memory);
  mask = places - 1;
  most = places / 8 * 5;
  for (std::size_t i = 0; i < before; ++i)
    if (old[i].name != 0) entries[place_of(old[i].name)] = old[i];
  if (old != nullptr) munmap(old, before * sizeof(Held));
  return true;
}

}  // namespace aliquot::interposer
