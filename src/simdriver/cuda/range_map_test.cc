#include "simdriver/cuda/range_map.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace aliquot::simdriver {
namespace {

TEST(FreeRanges, GiveTheFirstPlaceThatFitsItsAlignment) {
  FreeRanges ranges(100, 1000);
  EXPECT_EQ(ranges.take(10, 64), 128u);
  EXPECT_EQ(ranges.take(20, 1), 100u);
  EXPECT_EQ(ranges.take(2000, 1), std::nullopt);
}

TEST(FreeRanges, GiveAPlaceThatIsAskedForOnlyOnce) {
  FreeRanges ranges(0, 100);
  EXPECT_TRUE(ranges.take_at(40, 20));
  EXPECT_FALSE(ranges.take_at(50, 20));
  EXPECT_FALSE(ranges.take_at(90, 20));
  ranges.give(40, 20);
  EXPECT_TRUE(ranges.is_whole(0, 100));
}

// Property: nothing is given twice, and all that comes back merges to the whole.
TEST(FreeRanges, NeverGiveAByteTwiceUnderRandomUse) {
  constexpr std::uint64_t kBytes = 4096;
  std::mt19937 random(11);
  FreeRanges ranges(0, kBytes);
  std::vector<bool> taken(kBytes);
  std::vector<std::pair<std::uint64_t, std::uint64_t>> held;
  for (int step = 0; step < 20000; ++step) {
    if (held.empty() || random() % 2 == 0) {
      const std::uint64_t bytes = 1 + random() % 100;
      const auto at = ranges.take(bytes, 1u << random() % 5);
      if (!at) continue;
      for (std::uint64_t i = *at; i < *at + bytes; ++i) {
        ASSERT_FALSE(taken[i]);
        taken[i] = true;
      }
      held.emplace_back(*at, bytes);
    } else {
      const std::size_t which = random() % held.size();
      const auto [at, bytes] = held[which];
      for (std::uint64_t i = at; i < at + bytes; ++i) taken[i] = false;
      ranges.give(at, bytes);
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(which));
    }
  }
  for (const auto& [at, bytes] : held) ranges.give(at, bytes);
  EXPECT_TRUE(ranges.is_whole(0, kBytes));
}

}  // namespace
}  // namespace aliquot::simdriver
