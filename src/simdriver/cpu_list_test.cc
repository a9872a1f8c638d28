#include "simdriver/cpu_list.h"

#include <gtest/gtest.h>

namespace aliquot::simdriver {
namespace {

TEST(CpuList, ExpandsRangesAndSingles) {
  EXPECT_EQ(*parse_cpu_list("0-2,8,10-11"), (std::vector<unsigned>{0, 1, 2, 8, 10, 11}));
  EXPECT_EQ(*parse_cpu_list("7"), (std::vector<unsigned>{7}));
}

TEST(CpuList, RefusesWhatLinuxWouldNotWrite) {
  for (const char* text : {"", "a", "1-", "3-1", "1,,2", "1-2 ", "-1", "4096", "0-99999999999"})
    EXPECT_FALSE(parse_cpu_list(text)) << text;
}

}  // namespace
}  // namespace aliquot::simdriver
