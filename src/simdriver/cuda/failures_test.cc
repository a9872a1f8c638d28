#include "simdriver/cuda/failures.h"

#include <gtest/gtest.h>

namespace aliquot::simdriver {
namespace {

TEST(Failures, AreReadFromAList) {
  const std::vector<Failure> want{{"cuMemAlloc_v2", 3, 2}, {"cuLaunchKernel", 1, 719}};
  EXPECT_EQ(parse_failures("cuMemAlloc_v2:3=2,cuLaunchKernel:1=719"), want);
}

TEST(Failures, LeaveOutWhatDoesNotReadAsOne) {
  EXPECT_TRUE(parse_failures("").empty());
  EXPECT_TRUE(parse_failures("cuInit,:1=2,cuInit:0=2,cuInit:x=2,cuInit:1=,cuInit=1:2,,").empty());
  EXPECT_EQ(parse_failures("bad,cuInit:1=3").size(), 1u);
}

TEST(Failures, FromTheServerHitTheNthCallOnce) {
  MachinePage page{};
  EXPECT_EQ(injected_failure("cuMemFree_v2", &page), 0);
  page.generation = 1;
  page.failures[0] = {{"cuMemFree_v2"}, 2, 700};
  page.generation = 2;
  EXPECT_EQ(injected_failure("cuMemAlloc_v2", &page), 0);
  EXPECT_EQ(injected_failure("cuMemFree_v2", &page), 0);
  EXPECT_EQ(injected_failure("cuMemFree_v2", &page), 700);
  EXPECT_EQ(injected_failure("cuMemFree_v2", &page), 0);
}

}  // namespace
}  // namespace aliquot::simdriver
