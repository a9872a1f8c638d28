#include "broker/gpu_claims.h"

#include <gmock/gmock.h>
#include <unistd.h>

namespace aliquot::broker {
namespace {

// No other run of this test has these.
std::string uuid(int number) {
  return "test-" + std::to_string(getpid()) + "-" + std::to_string(number);
}

TEST(GpuClaims, OneBrokerHasAGpu) {
  GpuClaims mine, theirs;
  ASSERT_TRUE(mine.claim(uuid(1)));
  EXPECT_TRUE(mine.claim(uuid(1)));
  const Status refused = theirs.claim(uuid(1));
  EXPECT_EQ(refused.error().code, Errc::kUnavailable);
  EXPECT_THAT(refused.error().message, testing::HasSubstr("start aliquotd"));
  EXPECT_TRUE(theirs.claim(uuid(2)));
}

TEST(GpuClaims, WhatIsNotKeptIsFreeForOthers) {
  GpuClaims mine, theirs;
  ASSERT_TRUE(mine.claim(uuid(1)));
  ASSERT_TRUE(mine.claim(uuid(2)));
  mine.keep_only({uuid(2)});
  EXPECT_TRUE(theirs.claim(uuid(1)));
  EXPECT_FALSE(theirs.claim(uuid(2)));
}

}  // namespace
}  // namespace aliquot::broker
