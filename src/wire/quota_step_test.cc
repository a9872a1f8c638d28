#include "wire/quota_step.h"

#include <gtest/gtest.h>

#include <cstdio>

namespace aliquot::wire {
namespace {

TEST(KillAfterAnInstruction, LosesNothingAndCountsNothingTwice) {
  const StepReport report = kill_everywhere(7);
  std::printf("tenant %u instructions, broker %u, %u runs, %u unsettled\n",
              report.tenant_instructions, report.broker_instructions, report.runs,
              report.unsettled);
  EXPECT_EQ(report.violations, 0u) << report.first_violation;
  EXPECT_GT(report.unsettled, 0u);
  EXPECT_EQ(report.outcomes, 0xFu);  // every amount that can be held was left behind
  EXPECT_GT(report.runs, 50u);
}

TEST(KillAfterAnInstruction, FindsWritersThatDoNotHelp) {
  EXPECT_GT(kill_everywhere_without_help(7).violations, 0u);
}

TEST(KillAfterAnInstruction, FindsABrokerThatDoesNotSettle) {
  EXPECT_GT(kill_everywhere_reclaiming_unsettled(7).violations, 0u);
}

}  // namespace
}  // namespace aliquot::wire
