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
  std::uint64_t bytes : 48 = 0;
  std::uint64_t kind : 8 = 0;  // wire::Kind
  std::uint64_t gpu : 8 = 0;   // of the grant
};
static_assert(sizeof(Held) == 24);

class HeldTable {
 public:
  // False: no memory for the table, or no name; nothing is remembered. A name that is there already
  // (freed behind our back and given out again) is replaced; only then `replaced` is written.
  [[nodiscard]] bool insert(const Held& entry, Held* replaced);
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
    std::size_t capacity = 0;
    std::size_t count = 0;
    Held* entries = nullptr;
  };
  static constexpr unsigned kShardBits = 6;

  Shard& shard_of(std::uint64_t name);
  static bool grow(Shard& shard);
  static Held remove_at(Shard& shard, std::size_t at);

  std::array<Shard, 1u << kShardBits> shards_{};
};

}  // namespace aliquot::interposer
