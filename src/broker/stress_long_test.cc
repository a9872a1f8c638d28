#include <gtest/gtest.h>

#include <cstdio>

#include "broker/stress.h"

namespace aliquot::broker {
namespace {

TEST(StressInFull, TwentyThousandKillsAndFiveHundredBrokers) {
  StressPlan plan;
  plan.kills = 20000;
  plan.broker_kills = 500;
  plan.seed = 7;
  const StressReport report = stress(plan);
  std::printf("%s\n", text_of(report).c_str());
  for (const std::string& violation : report.violations) ADD_FAILURE() << violation;
  EXPECT_GE(report.broker_kills, 500u);
  EXPECT_LT(report.most_retries, 1000u);
}

}  // namespace
}  // namespace aliquot::broker
