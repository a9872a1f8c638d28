#include "simdriver/server/block_table.h"

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

const Block* BlockTable::open_exported(std::uint64_t id, SessionId who,
                                       std::optional<ChargeMove>& move) {
  const auto found = blocks_.find(id);
  if (found == blocks_.end()) return nullptr;
  Block& block = found->second;
  ++block.holds[who];
  if (block.payer == kByDescriptor) {
    move = ChargeMove{block.device, block.kind, block.bytes, kByDescriptor, who};
    block.payer = who;
  }
  return &block;
}

bool BlockTable::add_hold(std::uint64_t block, SessionId who) {
  const auto found = blocks_.find(block);
  if (found == blocks_.end()) return false;
  const auto hold = found->second.holds.find(who);
  if (hold == found->second.holds.end()) return false;
  ++hold->second;
  return true;
}

bool BlockTable::add_export(std::uint64_t block, SessionId who) {
  const auto found = blocks_.find(block);
  if (found == blocks_.end() || !found->second.holds.contains(who)) return false;
  ++found->second.holds[kByDescriptor];
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
    block.payer = block.holds.rbegin()->first;  // a process, where there is one
    move.to = block.payer;
  }
  return move;
}

}  // namespace aliquot::simdriver
