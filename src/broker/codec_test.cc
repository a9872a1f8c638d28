#include "broker/codec.h"

#include <gtest/gtest.h>

namespace aliquot::broker {
namespace {

LeaseRow full_row() {
  LeaseRow row;
  row.name = "a";
  row.guarded = true;
  row.state = wire::LeaseState::kPoisoned;
  row.gpus.push_back({1, "GPU-1", 2, 3, 4, -5, 12, {6, 7}, 8, 9, 10, 11, {}});
  row.gpus.back().compute.busy = 12;
  row.gpus.back().compute.state = ComputeState::kPaused;
  row.rows.push_back({12, 13, {14, 15}});
  return row;
}

TEST(Codec, AValueComesBackAsItWas) {
  LeaseRow back;
  ASSERT_TRUE(decode(encoded(full_row()), back));
  EXPECT_EQ(back.name, "a");
  EXPECT_TRUE(back.guarded);
  EXPECT_EQ(back.state, wire::LeaseState::kPoisoned);
  EXPECT_EQ(back.gpus.at(0).unaccounted_bytes, -5);
  EXPECT_EQ(back.gpus.at(0).kind_bytes, (std::vector<std::uint64_t>{6, 7}));
  EXPECT_EQ(back.rows.at(0).held_bytes.at(1), 15u);
  EXPECT_EQ(encoded(back), encoded(full_row()));
}

TEST(Codec, EveryShorterMessageIsRefused) {
  const std::string whole = encoded(full_row());
  for (std::size_t n = 0; n < whole.size(); ++n) {
    LeaseRow back;
    EXPECT_FALSE(decode(std::string_view(whole).substr(0, n), back)) << n;
  }
  LeaseRow back;
  EXPECT_FALSE(decode(whole + "x", back));
}

TEST(Codec, WhatIsAbsentStaysAbsent) {
  ComputeChange change, back;
  change.lease = "a";
  change.cores = 0;  // there, and nothing
  back.weight = 5;
  ASSERT_TRUE(decode(encoded(change), back));
  EXPECT_EQ(back.cores, 0u);
  EXPECT_FALSE(back.weight || back.share_class || back.capped);
  EXPECT_EQ(encoded(back), encoded(change));
  const std::string whole = encoded(change);
  for (std::size_t n = 0; n < whole.size(); ++n)
    EXPECT_FALSE(decode(std::string_view(whole).substr(0, n), back)) << n;
}

TEST(Codec, ALengthBeyondTheMessageAllocatesNothing) {
  Encoder encoder;
  encoder(~std::uint64_t{0});
  std::vector<LeaseRow> rows;
  std::string text;
  const std::string bytes = encoder.take();
  EXPECT_FALSE(decode(bytes, rows));
  EXPECT_FALSE(decode(bytes, text));
  EXPECT_EQ(rows.capacity(), 0u);
}

TEST(Codec, NumbersThatAFieldCannotHoldAreRefused) {
  Encoder encoder;
  encoder(std::uint64_t{1} << 32);
  std::uint32_t number = 0;
  EXPECT_FALSE(decode(encoded(std::uint64_t{1} << 32), number));
  bool flag = false;
  EXPECT_FALSE(decode(encoded(std::uint64_t{2}), flag));
}

}  // namespace
}  // namespace aliquot::broker
