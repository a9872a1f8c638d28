#include "driver_abi/coverage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "driver_abi/cuda_table.h"
#include "driver_abi/nvml_table.h"

namespace aliquot::driver_abi {
namespace {

constexpr std::array<Entry, 4> kRows{{{"cuA", "cuA", 2000, 0, Kind::kPass},
                                      {"cuB", "cuB", 2000, 12000, Kind::kGuard},
                                      {"cuC", "cuC", 12000, 0, Kind::kDeny},
                                      {"cuD", "cuD", 13010, 0, Kind::kGuard}}};

TEST(Coverage, CountsByKind) {
  EXPECT_EQ(coverage_of(kRows), (Coverage{.total = 4, .pass = 1, .guard = 2, .deny = 1}));
}

TEST(Coverage, CountsOnlyWhatAVersionExports) {
  EXPECT_EQ(coverage_of(kRows, 11080), (Coverage{.total = 2, .pass = 1, .guard = 1, .deny = 0}));
  EXPECT_EQ(coverage_of(kRows, 13000), (Coverage{.total = 2, .pass = 1, .guard = 0, .deny = 1}));
}

TEST(Coverage, NamesWithoutARowAreReported) {
  const std::vector<std::string> exported{"cuA", "cuNew", "cuD", "cuD_v2"};
  EXPECT_THAT(names_without_row(exported, kRows), testing::ElementsAre("cuNew", "cuD_v2"));
}

TEST(Coverage, A130DriverIsCoveredWhole) {
  EXPECT_EQ(coverage_of(kCudaEntries, 13000).total, 672u);
}

TEST(Coverage, EveryKindHasItsWord) {
  EXPECT_EQ(to_string(Kind::kPass), "pass");
  EXPECT_EQ(to_string(Kind::kGuard), "guard");
  EXPECT_EQ(to_string(Kind::kDeny), "deny");
}

}  // namespace
}  // namespace aliquot::driver_abi
