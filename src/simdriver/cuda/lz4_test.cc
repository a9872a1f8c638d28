#include "simdriver/cuda/lz4.h"

#include <gtest/gtest.h>

namespace aliquot::simdriver {
namespace {

TEST(Lz4, UnpacksLiteralsAndOverlappingMatches) {
  // "abc", then nine bytes from three back, then "!" as the last literals.
  const std::string block(
      "\x35"
      "abc"
      "\x03\x00"
      "\x10"
      "!",
      8);
  EXPECT_EQ(lz4_block(block, 13), "abcabcabcabc!");
}

TEST(Lz4, RefusesBlocksThatDoNotGiveTheSize) {
  const std::string block(
      "\x35"
      "abc"
      "\x03\x00"
      "\x10"
      "!",
      8);
  EXPECT_EQ(lz4_block(block, 12), std::nullopt);
  EXPECT_EQ(lz4_block(block, 14), std::nullopt);
  EXPECT_EQ(lz4_block(std::string("\x35"
                                  "abc"
                                  "\x09\x00",
                                  6),
                      12),
            std::nullopt);  // too far back
  EXPECT_EQ(lz4_block(std::string("\xf0\xff", 2), 400), std::nullopt);
}

}  // namespace
}  // namespace aliquot::simdriver
