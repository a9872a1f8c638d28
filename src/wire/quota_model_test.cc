#include "wire/quota_model.h"

#include <gtest/gtest.h>

#include <cstdio>

namespace aliquot::wire::model {
namespace {

TEST(QuotaModel, ThreeProcessesAndAKillHaveNoBadInterleaving) {
  const Report report = explore(three_processes_one_kill());
  EXPECT_EQ(report.violation, "");
  EXPECT_EQ(report.states, 778'042u);  // fewer: the model has become blind to something
  EXPECT_LE(report.longest_alone, 15);
}

// Otherwise a fault "found" below would say nothing.
TEST(QuotaModel, TheConfigurationsForFaultsAreCleanWithoutOne) {
  const std::vector<Plan> plans = plans_for_faults();
  for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(explore(plans[i]).violation, "") << plans[i].name;
}

class PlantedFault : public testing::TestWithParam<Fault> {};

INSTANTIATE_TEST_SUITE_P(All, PlantedFault,
                         testing::Values(Fault::kNoHelp, Fault::kNoIdentityBeforeHelp,
                                         Fault::kNoSequenceInMirror, Fault::kSettledByBytesAlone,
                                         Fault::kLostHelpIsDone, Fault::kFreedBeforeSubtracted,
                                         Fault::kLimitWithoutBump, Fault::kSeparateCounter,
                                         Fault::kReclaimUnsettled));

// Each in at least one of the configurations; the first that shows it ends the search.
TEST_P(PlantedFault, IsFound) {
  for (Plan plan : plans_for_faults()) {
    plan.fault = GetParam();
    plan.check_alone = false;
    const Report report = explore(plan);
    if (report.violation.empty()) continue;
    RecordProperty("found", report.violation);
    SUCCEED() << report.violation << " after " << report.states << " states in " << plan.name;
    return;
  }
  FAIL() << "no configuration shows this fault";
}

// All configurations, 80 million states: `make test-long` runs each by itself.
struct Known {
  std::size_t plan, states;  // fewer states: the model has become blind to something
};
class DISABLED_QuotaModelInFull : public testing::TestWithParam<Known> {};

INSTANTIATE_TEST_SUITE_P(InFull, DISABLED_QuotaModelInFull,
                         testing::Values(Known{0, 10'282'107}, Known{1, 10'011'770},
                                         Known{2, 3'362'569}, Known{3, 778'042},
                                         Known{4, 7'675'177}, Known{5, 1'902'683},
                                         Known{6, 7'406'477}, Known{7, 38'935'530}));

TEST_P(DISABLED_QuotaModelInFull, HasNoBadInterleaving) {
  const Plan plan = all_plans().at(GetParam().plan);
  const Report report = explore(plan);
  std::printf("%s: %zu states, %zu transitions, %zu ends, alone %d steps\n", plan.name.c_str(),
              report.states, report.transitions, report.ends, report.longest_alone);
  EXPECT_EQ(report.violation, "");
  EXPECT_EQ(report.states, GetParam().states);
  EXPECT_LE(report.longest_alone, 15);
}

}  // namespace
}  // namespace aliquot::wire::model
