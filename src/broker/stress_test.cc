#include "broker/stress.h"

#include <gtest/gtest.h>

#include <cstdio>

namespace aliquot::broker {
namespace {

TEST(Stress, TwoThousandKillsLoseNothing) {
  StressPlan plan;
  plan.kills = 2000;
  plan.broker_kills = 20;
  plan.workers = 12;
  plan.threads = 3;
  plan.seed = 7;
  const StressReport report = stress(plan);
  std::printf("%s\n", text_of(report).c_str());
  for (const std::string& violation : report.violations) ADD_FAILURE() << violation;
  EXPECT_GE(report.kills, 2000u);
  EXPECT_LT(report.most_retries, 1000u);
  EXPECT_GT(report.freezes, 10u);
  EXPECT_GT(report.highest_used, report.limit / 2);  // else nothing was at stake
}

}  // namespace
}  // namespace aliquot::broker
