// All configurations of the model: 318 million states, some minutes, 4 GiB.
#include <gtest/gtest.h>

#include <cstdio>

#include "wire/quota_model.h"

namespace aliquot::wire::model {
namespace {

TEST(QuotaModelInFull, NoConfigurationHasABadInterleaving) {
  for (const Plan& plan : all_plans()) {
    const Report report = explore(plan);
    std::printf("%s: %zu states, %zu transitions, %zu ends, alone %d steps\n", plan.name.c_str(),
                report.states, report.transitions, report.ends, report.longest_alone);
    std::fflush(stdout);
    EXPECT_EQ(report.violation, "") << plan.name;
    EXPECT_LE(report.longest_alone, 17) << plan.name;
  }
}

}  // namespace
}  // namespace aliquot::wire::model
