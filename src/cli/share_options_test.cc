#include "cli/share_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace aliquot::cli {
namespace {

using model::kGiB;
using model::kMiB;
using testing::HasSubstr;

TEST(SharesOf, OnePlainShareByDefault) {
  const auto shares = shares_of({.memory = "4GiB"});
  ASSERT_TRUE(shares);
  ASSERT_EQ(shares->size(), 1u);
  EXPECT_EQ((*shares)[0].gpu, "");
  EXPECT_EQ((*shares)[0].memory.value, 4 * kGiB);
}

TEST(SharesOf, DifferentAmountsPerGpuKeepWhatThePlainOptionsSaid) {
  const auto shares = shares_of({.gpu = "0:4GiB,GPU-a:512MiB,3", .memory = "1GiB"});
  ASSERT_TRUE(shares) << shares.error().message;
  ASSERT_EQ(shares->size(), 3u);
  EXPECT_EQ((*shares)[0].memory.value, 4 * kGiB);
  EXPECT_EQ((*shares)[1].gpu, "GPU-a");
  EXPECT_EQ((*shares)[1].memory.value, 512 * kMiB);
  EXPECT_EQ((*shares)[2].memory.value, 1 * kGiB);
}

TEST(SharesOf, CoresFollowASlash) {
  const auto shares = shares_of({.gpu = "0:4GiB/30,1/12.5%,2", .cores = 700});
  ASSERT_TRUE(shares) << shares.error().message;
  EXPECT_EQ((*shares)[0].memory.value, 4 * kGiB);
  EXPECT_EQ((*shares)[0].cores, 3000u);
  EXPECT_EQ((*shares)[1].gpu, "1");
  EXPECT_EQ((*shares)[1].cores, 1250u);
  EXPECT_EQ((*shares)[2].cores, 700u);
}

TEST(SharesOf, TheBestNOfThem) { EXPECT_EQ(shares_of({.gpus = 4})->size(), 4u); }

TEST(SharesOf, RefusesWhatCannotBeMeant) {
  const auto message = [](const ShareOptions& options) {
    const auto shares = shares_of(options);
    return shares ? std::string("accepted") : shares.error().message;
  };
  EXPECT_THAT(message({.gpu = "0,0:1GiB"}), HasSubstr("\"0\": named twice"));
  EXPECT_THAT(message({.gpu = "0,"}), HasSubstr("names no GPU"));
  EXPECT_THAT(message({.gpu = ":4GiB"}), HasSubstr("names no GPU"));
  EXPECT_THAT(message({.gpu = "0:"}), HasSubstr("memory \"\""));
  EXPECT_THAT(message({.gpu = "0:4"}), HasSubstr("has no unit"));
  EXPECT_THAT(message({.gpu = "0", .gpus = 2}), HasSubstr("one of them"));
  EXPECT_THAT(message({.gpu = "0/101"}), HasSubstr("101"));
  EXPECT_THAT(message({.gpu = "0:4GiB/"}), HasSubstr("cores \"\""));
  EXPECT_THAT(message({.gpu = "/30"}), HasSubstr("names no GPU"));
  EXPECT_THAT(message({.gpus = 17}), HasSubstr("at most 16"));
  EXPECT_THAT(message({.memory = "0"}), HasSubstr("\"0\""));
}

}  // namespace
}  // namespace aliquot::cli
