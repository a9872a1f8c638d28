// HeldTable: what this process holds, by the driver's own name for it (a pointer or a handle).
//
// 64 shards by the top bits of a multiplicative hash; each is a short lock and an open-addressing
// table with linear probing and backward-shift deletion (no tombstones), at most 5/8 full. It only
// remembers: charging is the account's business. An entry is taken out *before* the driver frees,
// because the driver may hand the same name to another thread at once.
//
// Any thread. Memory comes from mmap, never from malloc: the caller may be inside the program's
// allocator. Constant-initialised, so usable before any constructor has run.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "interposer/short_lock.h"

namespace aliquot::interposer {

struct Held {
  std::uint64_t name = 0;   // never 0 in the table
  std::uint64_t owner = 0;  // the context it goes down with; 0: none
  std::uint64_t bytes = 0;
  std::uint32_t kind = 0;  // wire::Kind
  std::uint32_t gpu = 0;   // of the grant
};
static_assert(sizeof(Held) == 32);

class HeldTable {
 public:
  // False: no memory for the table, or no name; nothing is remembered. A name that is there already
  // (freed behind our back and given out again) is replaced; only then `replaced` is written.
  [[nodiscard]] bool insert(const Held& entry, Held* replaced);
  // The common case of it, without a call: false where it would have to wait, grow or replace.
  [[nodiscard]] bool insert_at_once(const Held& entry);
  // Removes and returns the entry; its name is 0 if there is none.
  Held take(std::uint64_t name);
  // A copy; name 0 if there is none.
  Held find(std::uint64_t name);
  // Takes out one entry that `matches` says yes to; name 0 when there is none left. Walks the
  // whole table: for the end of a context, not for a fast path.
  Held take_any(bool (*matches)(const Held&, std::uint64_t), std::uint64_t argument);
  std::size_t size();
  // In the child of a fork: what is held is the parent's.
  void forget_all();

 private:
  struct alignas(64) Shard {
    ShortLock lock;
    std::size_t mask = 0;   // places less one: the places are a power of two
    std::size_t count = 0;  // of entries
    std::size_t most = 0;   // entries it may have before it grows: 5/8 of the places
    Held* entries = nullptr;

    std::size_t capacity() const { return entries == nullptr ? 0 : mask + 1; }
    // Where `name` lies, or the free place where it would. Not before the first entry ever.
    std::size_t place_of(std::uint64_t name) const;
    Held remove(std::size_t at);
    bool grow();
  };
  static constexpr unsigned kShardBits = 6;

  static std::uint64_t mixed(std::uint64_t name) { return name * 0x9E3779B97F4A7C15ull; }
  // The shard uses the top bits, the place within it those below.
  static std::size_t home(std::uint64_t name, std::size_t mask) {
    return (mixed(name) >> 16) & mask;
  }
  Shard& shard_of(std::uint64_t name) { return shards_[mixed(name) >> (64 - kShardBits)]; }

  std::array<Shard, 1u << kShardBits> shards_{};
};

inline std::size_t HeldTable::Shard::place_of(std::uint64_t name) const {
  std::size_t i = home(name, mask);
  while (entries[i].name != name && entries[i].name != 0) i = (i + 1) & mask;
  return i;
}

inline bool HeldTable::insert_at_once(const Held& entry) {
  if (entry.name == 0) return false;
  Shard& shard = shard_of(entry.name);
  if (!shard.lock.try_lock()) return false;
  if (shard.count != shard.most) {
    Held& at = shard.entries[shard.place_of(entry.name)];
    if (at.name == 0) {
      at = entry;
      ++shard.count;
      shard.lock.unlock();
      return true;
    }
  }
  shard.lock.unlock();
  return false;
}

}  // namespace aliquot::interposer
