#include "simdriver/server/block_table.h"

#include <algorithm>
#include <utility>

namespace aliquot::simdriver {

const Block& BlockTable::add(Block fresh) {
  fresh.key.block = ++last_id_;
  fresh.holds[fresh.payer] = 1;
  return blocks_.emplace(last_id_, std::move(fresh)).first->second;
}

const Block* BlockTable::open(const BlockKey& key, SessionId who) {
  const auto found = blocks_.find(key.block);
  if (found == blocks_.end() || found->second.key.key != key.key) return nullptr;
  ++found->second.holds[who];
  return &found->second;
}

const Block* BlockTable::open_inode(ino_t inode, SessionId who) {
  const auto found =
      std::ranges::find_if(blocks_, [&](const auto& entry) { return entry.second.inode == inode; });
  if (found == blocks_.end()) return nullptr;
  ++found->second.holds[who];
  return &found->second;
}

bool BlockTable::add_hold(std::uint64_t block, SessionId who) {
  const auto found = blocks_.find(block);
  if (found == blocks_.end()) return false;
  const auto hold = found->second.holds.find(who);
  if (hold == found->second.holds.end()) return false;
  ++hold->second;
  return true;
}

bool BlockTable::release(std::uint64_t block, SessionId who, std::optional<ChargeMove>& move) {
  const auto found = blocks_.find(block);
  if (found == blocks_.end()) return false;
  const auto hold = found->second.holds.find(who);
  if (hold == found->second.holds.end()) return false;
  if (--hold->second == 0) move = drop_all(found, who);
  return true;
}

std::optional<ChargeMove> BlockTable::drop_all(Entry entry, SessionId who) {
  Block& block = entry->second;
  block.holds.erase(who);
  if (block.payer != who && !block.holds.empty()) return std::nullopt;
  ChargeMove move{block.device, block.kind, block.bytes, block.payer, std::nullopt};
  if (block.holds.empty()) {
    blocks_.erase(entry);
  } else {
    block.payer = block.holds.begin()->first;
    move.to = block.payer;
  }
  return move;
}

}  // namespace aliquot::simdriver
