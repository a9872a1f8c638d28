// Every instruction, not every seventh.
#include <gtest/gtest.h>

#include <cstdio>

#include "wire/quota_step.h"

namespace aliquot::wire {
namespace {

TEST(KillAfterEveryInstruction, LosesNothingAndCountsNothingTwice) {
  const StepReport report = kill_everywhere(1);
  std::printf("tenant %u instructions, broker %u, %u runs, %u unsettled\n",
              report.tenant_instructions, report.broker_instructions, report.runs,
              report.unsettled);
  EXPECT_EQ(report.violations, 0u) << report.first_violation;
  EXPECT_EQ(report.outcomes, 0xFu);
  EXPECT_GT(report.unsettled, 5u);
}

}  // namespace
}  // namespace aliquot::wire
