#include "simdriver/server/device_books.h"

#include <gtest/gtest.h>

#include <random>

namespace aliquot::simdriver {
namespace {

constexpr std::uint64_t kMiB = 1u << 20;

TEST(DeviceBooks, ChargesWholeGranules) {
  DeviceBooks books(80 * kMiB);
  EXPECT_EQ(books.take(1, MemoryKind::kLinear, 1), 2 * kMiB);
  EXPECT_EQ(books.take(1, MemoryKind::kLinear, 2 * kMiB + 1), 4 * kMiB);
  EXPECT_EQ(books.used_bytes(), 6 * kMiB);
  EXPECT_EQ(books.held_bytes(1), 6 * kMiB);
}

TEST(DeviceBooks, GivesTheLastGranuleAndRefusesTheNextByte) {
  DeviceBooks books(10 * kMiB);
  EXPECT_TRUE(books.take(1, MemoryKind::kLinear, 10 * kMiB));
  EXPECT_FALSE(books.take(1, MemoryKind::kLinear, 1));
  EXPECT_TRUE(books.give(1, MemoryKind::kLinear, 2 * kMiB));
  EXPECT_TRUE(books.take(2, MemoryKind::kVmm, 2 * kMiB));
}

TEST(DeviceBooks, NeverPassesATotalThatIsNoWholeGranule) {
  DeviceBooks books(3 * kMiB);
  EXPECT_TRUE(books.take(1, MemoryKind::kLinear, 2 * kMiB));
  EXPECT_FALSE(books.take(1, MemoryKind::kLinear, 1));
}

TEST(DeviceBooks, RefusesRequestsThatWouldWrap) {
  DeviceBooks books(80 * kMiB);
  EXPECT_FALSE(books.take(1, MemoryKind::kLinear, ~std::uint64_t{0}));
  EXPECT_FALSE(books.take(1, MemoryKind::kLinear, ~std::uint64_t{0} - kMiB));
  EXPECT_EQ(books.used_bytes(), 0u);
}

TEST(DeviceBooks, RefusesToTakeBackWhatWasNotHeld) {
  DeviceBooks books(80 * kMiB);
  ASSERT_TRUE(books.take(1, MemoryKind::kLinear, 4 * kMiB));
  EXPECT_FALSE(books.give(1, MemoryKind::kVmm, 2 * kMiB));
  EXPECT_FALSE(books.give(1, MemoryKind::kLinear, 6 * kMiB));
  EXPECT_FALSE(books.give(2, MemoryKind::kLinear, 2 * kMiB));
  EXPECT_FALSE(books.give(1, MemoryKind::kLinear, ~std::uint64_t{0}));
  EXPECT_EQ(books.used_bytes(), 4 * kMiB);
}

TEST(DeviceBooks, ForgetsAllKindsOfADeadProcessAndNobodyElses) {
  DeviceBooks books(80 * kMiB);
  ASSERT_TRUE(books.take(1, MemoryKind::kLinear, 4 * kMiB));
  ASSERT_TRUE(books.take(1, MemoryKind::kContext, 6 * kMiB));
  ASSERT_TRUE(books.take(2, MemoryKind::kPool, 8 * kMiB));
  EXPECT_EQ(books.forget(1), 10 * kMiB);
  EXPECT_EQ(books.forget(1), 0u);
  EXPECT_EQ(books.used_bytes(), 8 * kMiB);
}

TEST(DeviceBooks, HandsSharedMemoryToTheRemainingHolder) {
  DeviceBooks books(80 * kMiB);
  ASSERT_TRUE(books.take(1, MemoryKind::kVmm, 4 * kMiB));
  EXPECT_TRUE(books.hand_over(1, 2, MemoryKind::kVmm, 4 * kMiB));
  EXPECT_EQ(books.held_bytes(1), 0u);
  EXPECT_EQ(books.held_bytes(2), 4 * kMiB);
}

// Property: after any sequence the sum of the holders equals the used bytes, and never passes
// the total.
TEST(DeviceBooks, BalancesUnderRandomUse) {
  std::mt19937_64 random(20250711);
  DeviceBooks books(301 * kMiB);
  for (int step = 0; step < 20000; ++step) {
    const SessionId who = random() % 5;
    const auto kind = static_cast<MemoryKind>(random() % 4);
    const std::uint64_t bytes = random() % (24 * kMiB);
    switch (random() % 8) {
      case 0:
        books.forget(who);
        break;
      case 1:
      case 2:
      case 3:
        books.give(who, kind, bytes);
        break;
      default:
        books.take(who, kind, bytes);
    }
    std::uint64_t sum = 0;
    for (const auto& [session, held] : books.holders()) sum += books.held_bytes(session);
    ASSERT_EQ(sum, books.used_bytes()) << "step " << step;
    ASSERT_LE(books.used_bytes(), books.total_bytes());
  }
}

}  // namespace
}  // namespace aliquot::simdriver
