#include "cli/compute_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace aliquot::cli {
namespace {

using testing::HasSubstr;

TEST(ComputeOptions, WhatIsNotGivenIsNotChanged) {
  const auto change = change_of({});
  ASSERT_TRUE(change);
  EXPECT_FALSE(change->cores || change->weight || change->priority || change->share_class ||
               change->capped);
}

TEST(ComputeOptions, WordsBecomeValues) {
  const auto change =
      change_of({.cores = "12.5%", .weight = 3, .share_class = "online", .cap = true});
  ASSERT_TRUE(change) << change.error().message;
  EXPECT_EQ(change->cores, 1250u);
  EXPECT_EQ(change->weight, 3u);
  EXPECT_EQ(change->share_class, wire::ShareClass::kOnline);
  EXPECT_EQ(change->capped, true);
  EXPECT_EQ(change_of({.cores = "none"})->cores, 0u);
}

TEST(ComputeOptions, AWordThatCannotBeMeantIsNamed) {
  EXPECT_THAT(change_of({.share_class = "onlin"}).error().message,
              HasSubstr("\"onlin\": write one of offline, online"));
  EXPECT_THAT(change_of({.cores = "0"}).error().message, HasSubstr("\"0\""));
  EXPECT_THAT(parse_policy("6").error().message, HasSubstr("\"6\""));
  EXPECT_THAT(parse_on_bypass("kill").error().message, HasSubstr("report, ban, stop, end"));
  EXPECT_THAT(parse_overcommit("99").error().message, HasSubstr("100 to 1000"));
}

TEST(ComputeOptions, CappedAndNotCappedAtOnceIsRefused) {
  CLI::App both, one;
  add_compute_options(both);
  EXPECT_THROW(both.parse("--cap --no-cap"), CLI::ParseError);
  const auto options = add_compute_options(one);
  one.parse("--no-cap");
  EXPECT_EQ(options->cap, false);
}

TEST(ComputeOptions, PoliciesGoByNumberAndByEitherName) {
  EXPECT_EQ(*parse_policy("0"), wire::Policy::kFair);
  EXPECT_EQ(*parse_policy("5"), wire::Policy::kNative);
  EXPECT_EQ(*parse_policy("fixed-share"), wire::Policy::kFixed);
  EXPECT_EQ(*parse_policy("burst-share"), wire::Policy::kBurst);
  EXPECT_EQ(*parse_policy("be"), wire::Policy::kBestEffort);
  for (std::uint32_t number = 0; number <= 7; ++number) {
    const wire::Policy policy{number};
    EXPECT_EQ(*parse_policy(policy_text(policy)), policy);
  }
}

TEST(ComputeOptions, TimesHaveAUnit) {
  EXPECT_EQ(*parse_time("100ms"), 100'000'000u);
  EXPECT_EQ(*parse_time("1.5s"), 1'500'000'000u);
  EXPECT_FALSE(parse_time("100"));
  EXPECT_FALSE(parse_time("-1s"));
  EXPECT_FALSE(parse_time("ms"));
  EXPECT_EQ(time_text(0), "0");
  EXPECT_EQ(time_text(250'000), "250us");
  EXPECT_EQ(time_text(1'240'000'000), "1.2s");
  EXPECT_EQ(time_text(310'000'000'000), "310s");
}

}  // namespace
}  // namespace aliquot::cli
