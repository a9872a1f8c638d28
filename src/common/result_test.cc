#include "common/result.h"

#include <gtest/gtest.h>

#include <memory>

namespace aliquot {
namespace {

Result<int> half(int n) {
  if (n % 2 != 0) return Error{Errc::kInvalid, "half of " + std::to_string(n) + ": odd"};
  return n / 2;
}

TEST(Result, CarriesAValueOrWhatWasAttempted) {
  EXPECT_EQ(*half(8), 4);
  EXPECT_EQ(half(3).error(), (Error{Errc::kInvalid, "half of 3: odd"}));
}

TEST(Result, MovesAnOwnedValueOut) {
  Result<std::unique_ptr<int>> owned(std::make_unique<int>(7));
  const std::unique_ptr<int> taken = *std::move(owned);
  EXPECT_EQ(*taken, 7);
}

TEST(Status, IsGoodByDefault) {
  EXPECT_TRUE(Status());
  EXPECT_FALSE(Status(Error{Errc::kDenied, "open x: denied"}));
}

}  // namespace
}  // namespace aliquot
