// Device memory that several processes may map: exportable VMM handles, IPC memory, shared pools.
// Each block has its own file, a secret key that opens it, and holds counted per session; the
// charge lies with one holder and moves on when that one lets go. A descriptor that stands for the
// block (exports.h) holds it too, as nobody's: it is charged only while no process is there to be.
// Pure but for the descriptors it owns; the server's loop is its only caller.
#pragma once

#include <map>
#include <optional>

#include "common/unique_fd.h"
#include "simdriver/channel/messages.h"
#include "simdriver/server/device_books.h"

namespace aliquot::simdriver {

// Holds by descriptor; no session has this number.
inline constexpr SessionId kByDescriptor = 0;

struct Block {
  BlockKey key{};
  std::uint32_t device = 0;
  MemoryKind kind = MemoryKind::kVmm;
  std::uint64_t bytes = 0;
  UniqueFd file;
  SessionId payer = 0;
  std::map<SessionId, std::uint32_t> holds;
};

// What a release or an end means for the books.
struct ChargeMove {
  std::uint32_t device = 0;
  MemoryKind kind = MemoryKind::kVmm;
  std::uint64_t bytes = 0;
  SessionId from = 0;
  std::optional<SessionId> to{};  // nothing: the block is gone, the bytes are free
};

class BlockTable {
 public:
  // `fresh` names everything but the id and the holds; the payer holds it once.
  const Block& add(Block fresh);
  // nullptr: no such block, a wrong key.
  const Block* open(const BlockKey& key, SessionId who);
  // For who has a descriptor that stands for it; `move` is set when nobody was charged.
  const Block* open_exported(std::uint64_t block, SessionId who, std::optional<ChargeMove>& move);
  // False: `who` does not hold it.
  bool add_hold(std::uint64_t block, SessionId who);
  // One more descriptor stands for the block, given to `who`; it ends with release() of
  // kByDescriptor.
  bool add_export(std::uint64_t block, SessionId who);
  // False: `who` does not hold it. `move` is set when the charge has to move.
  bool release(std::uint64_t block, SessionId who, std::optional<ChargeMove>& move);
  // All holds of a dead process, calling `on_move` for each charge to move.
  template <typename OnMove>
  void forget(SessionId who, OnMove on_move) {
    for (auto next = blocks_.begin(); next != blocks_.end();) {
      const auto block = next++;
      if (block->second.holds.contains(who)) {
        if (const auto move = drop_all(block, who)) on_move(*move);
      }
    }
  }
  std::size_t size() const { return blocks_.size(); }

 private:
  using Entry = std::map<std::uint64_t, Block>::iterator;
  std::optional<ChargeMove> drop_all(Entry block, SessionId who);

  std::map<std::uint64_t, Block> blocks_;
  std::uint64_t last_id_ = 0;
};

}  // namespace aliquot::simdriver
