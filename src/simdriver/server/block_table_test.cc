#include "simdriver/server/block_table.h"

#include <gtest/gtest.h>

#include <vector>

namespace aliquot::simdriver {
namespace {

Block of(SessionId payer, std::uint64_t bytes) {
  Block block;
  block.bytes = bytes;
  block.payer = payer;
  block.key.key.fill(9);
  return block;
}

TEST(BlockTable, OpensForWhoKnowsTheKeyOnly) {
  BlockTable table;
  const BlockKey key = table.add(of(1, 100)).key;
  BlockKey wrong = key;
  wrong.key[3] ^= 1;
  EXPECT_EQ(table.open(wrong, 2), nullptr);
  wrong = key;
  ++wrong.block;
  EXPECT_EQ(table.open(wrong, 2), nullptr);
  EXPECT_NE(table.open(key, 2), nullptr);
}

TEST(BlockTable, IsGoneAfterTheLastHoldAndFreesItsBytes) {
  BlockTable table;
  const std::uint64_t id = table.add(of(1, 100)).key.block;
  ASSERT_TRUE(table.add_hold(id, 1));
  std::optional<ChargeMove> move;
  EXPECT_TRUE(table.release(id, 1, move));
  EXPECT_FALSE(move);
  EXPECT_TRUE(table.release(id, 1, move));
  ASSERT_TRUE(move);
  EXPECT_EQ(move->bytes, 100u);
  EXPECT_FALSE(move->to);
  EXPECT_EQ(table.size(), 0u);
  EXPECT_FALSE(table.release(id, 1, move));
}

TEST(BlockTable, HandsTheChargeToTheImporterWhenTheExporterLetsGo) {
  BlockTable table;
  const BlockKey key = table.add(of(1, 100)).key;
  ASSERT_NE(table.open(key, 2), nullptr);
  std::optional<ChargeMove> move;
  EXPECT_TRUE(table.release(key.block, 1, move));
  ASSERT_TRUE(move);
  EXPECT_EQ(move->from, 1u);
  EXPECT_EQ(move->to, 2u);
  EXPECT_EQ(table.size(), 1u);
}

TEST(BlockTable, AnImporterThatLetsGoMovesNothing) {
  BlockTable table;
  const BlockKey key = table.add(of(1, 100)).key;
  ASSERT_NE(table.open(key, 2), nullptr);
  std::optional<ChargeMove> move;
  EXPECT_TRUE(table.release(key.block, 2, move));
  EXPECT_FALSE(move);
  EXPECT_FALSE(table.release(key.block, 2, move));
  EXPECT_FALSE(table.add_hold(key.block, 2));
}

TEST(BlockTable, ADescriptorKeepsWhatItsMakerLetsGo) {
  BlockTable table;
  const std::uint64_t id = table.add(of(1, 100)).key.block;
  EXPECT_FALSE(table.add_export(id, 2));  // it does not hold it
  ASSERT_TRUE(table.add_export(id, 1));
  std::optional<ChargeMove> move;
  EXPECT_TRUE(table.release(id, 1, move));
  ASSERT_TRUE(move);
  EXPECT_EQ(move->to, kByDescriptor);
  move.reset();
  ASSERT_NE(table.open_exported(id, 2, move), nullptr);
  ASSERT_TRUE(move);  // a process is there to be charged again
  EXPECT_EQ(move->from, kByDescriptor);
  EXPECT_EQ(move->to, 2u);
  move.reset();
  EXPECT_TRUE(table.release(id, kByDescriptor, move));
  EXPECT_FALSE(move);
  EXPECT_TRUE(table.release(id, 2, move));
  ASSERT_TRUE(move);
  EXPECT_FALSE(move->to);
  EXPECT_EQ(table.size(), 0u);
}

TEST(BlockTable, ChargesAProcessRatherThanADescriptor) {
  BlockTable table;
  const BlockKey key = table.add(of(1, 100)).key;
  ASSERT_TRUE(table.add_export(key.block, 1));
  ASSERT_NE(table.open(key, 2), nullptr);
  std::vector<ChargeMove> moves;
  table.forget(1, [&](const ChargeMove& move) { moves.push_back(move); });
  ASSERT_EQ(moves.size(), 1u);
  EXPECT_EQ(moves[0].to, 2u);
}

TEST(BlockTable, ForgetsADeadProcessWhateverItsHolds) {
  BlockTable table;
  const BlockKey mine = table.add(of(1, 100)).key;
  const BlockKey shared = table.add(of(1, 200)).key;
  ASSERT_TRUE(table.add_hold(mine.block, 1));
  ASSERT_NE(table.open(shared, 2), nullptr);
  std::vector<ChargeMove> moves;
  table.forget(1, [&](const ChargeMove& move) { moves.push_back(move); });
  ASSERT_EQ(moves.size(), 2u);
  EXPECT_FALSE(moves[0].to);
  EXPECT_EQ(moves[1].to, 2u);
  EXPECT_EQ(table.size(), 1u);
}

}  // namespace
}  // namespace aliquot::simdriver
