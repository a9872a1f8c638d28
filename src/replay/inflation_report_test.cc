#include "replay/inflation_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace aliquot::replay {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// Two policies; the second has two seeds.
InflationReport report() {
  InflationResult one;
  one.allocated.fill(50);
  one.allocated[130] = 90;
  one.fragmented = 4;
  one.arrived_pods = 10;
  one.refused_pods = 1;
  InflationResult other = one;
  other.allocated[130] = 92;
  other.refused_pods = 2;
  return {"p<o>ds.csv", "16 GPUs", {{"fgd", {7}, {one}}, {"ours", {7, 8}, {one, other}}}};
}

TEST(InflationReport, SpreadsOverTheSeeds) {
  const Spread at = allocated_at(report().runs[1], 130);
  EXPECT_DOUBLE_EQ(at.mean, 91);
  EXPECT_DOUBLE_EQ(at.least, 90);
  EXPECT_DOUBLE_EQ(at.most, 92);
  EXPECT_DOUBLE_EQ(refused(report().runs[1]).mean, 1.5);
  EXPECT_DOUBLE_EQ(fragmented(report().runs[0]).most, 4);
}

TEST(InflationReport, WritesALineAPolicySeedAndPercent) {
  const std::string csv = inflation_csv(report());
  EXPECT_THAT(csv, StartsWith("policy,seed,arrived_percent,allocated_percent\nfgd,7,0,50.00\n"));
  EXPECT_THAT(csv, HasSubstr("\nours,8,130,92.00\n"));
  EXPECT_EQ(std::ranges::count(csv, '\n'), 1 + 3 * 131);
}

TEST(InflationReport, TellsEverySeedInJson) {
  const auto json = format::parse_json(inflation_json(report()).dump(), "out");
  ASSERT_TRUE(json) << json.error().message;
  EXPECT_EQ(*json->find("simulated"), format::Json(true));
  const auto& seeds = *(*json->find("runs")->if_array())[1].find("seeds")->if_array();
  ASSERT_EQ(seeds.size(), 2u);
  EXPECT_EQ(seeds[1].find("allocated_percent")->if_array()->size(), 131u);
  EXPECT_EQ(*seeds[1].find("refused_pods"), format::Json(2));
}

TEST(InflationReport, DrawsAPageThatNeedsNothingElse) {
  const std::string page = inflation_html(report());
  EXPECT_THAT(page, HasSubstr("Inflation of p&lt;o&gt;ds.csv"));
  EXPECT_THAT(page, HasSubstr("91.00 % <span class=\"note\">(90.00 to 92.00)"));
  EXPECT_THAT(page, HasSubstr(">130 %</text>"));
  for (const char* loads : {"src=", "href=", "<script", "url("})
    EXPECT_THAT(page, Not(HasSubstr(loads)));
}

}  // namespace
}  // namespace aliquot::replay
