// The policies' worked examples: what each tenant's share is.
#include "gate/terms.h"

#include <gtest/gtest.h>

namespace aliquot::gate {
namespace {

// max_inst 20: one unit is 5 %.
GpuTerms gpu(Policy policy, std::uint32_t prio_ratio = 0) {
  return {.policy = policy, .max_inst = 20, .prio_ratio = prio_ratio};
}
Claim busy(std::uint32_t weight = 1, double cores = 0) {
  return {.terms = {.cores_percent = cores, .weight = weight}, .holds_gpu = true, .active = true};
}
Claim online(std::uint32_t weight = 1, bool active = true) {
  return {.terms = {.weight = weight, .share_class = ShareClass::kOnline},
          .holds_gpu = true,
          .active = active};
}
Claim without_process(std::uint32_t weight = 1) {
  return {.terms = {.weight = weight}, .holds_gpu = false, .active = false};
}
std::vector<double> percents(const GpuTerms& terms, const std::vector<Claim>& claims) {
  std::vector<double> result;
  for (const Share& share : shares_of(terms, claims)) result.push_back(share.percent);
  return result;
}
using Percents = std::vector<double>;

TEST(Policy0Fair, GivesOneUnitEachWhateverTheOthersDo) {
  EXPECT_EQ(percents(gpu(Policy::kFair), {busy()}), (Percents{5}));
  EXPECT_EQ(percents(gpu(Policy::kFair), {busy(), busy(3), without_process()}),
            (Percents{5, 5, 5}));
  EXPECT_TRUE(shares_of(gpu(Policy::kFair), std::vector{busy()})[0].capped);
}

TEST(Policy1Preemptive, DividesAmongThoseThatHoldTheGpu) {
  const Percents thirds(3, 100.0 / 3);
  EXPECT_EQ(percents(gpu(Policy::kPreemptive), {busy(), busy(), busy()}), thirds);
  EXPECT_EQ(percents(gpu(Policy::kPreemptive), {busy(), without_process(), without_process()}),
            (Percents{100, 0, 0}));
}

TEST(Policy2Weighted, DividesByWeight) {
  EXPECT_EQ(percents(gpu(Policy::kWeighted), {busy(1), busy(1), busy(2)}), (Percents{25, 25, 50}));
}

TEST(Policy2Weighted, SkipsATenantWithoutAProcessOnTheGpu) {
  EXPECT_EQ(percents(gpu(Policy::kWeighted), {busy(1), busy(1), without_process(2)}),
            (Percents{50, 50, 0}));
}

TEST(Policy2Weighted, KeepsTheUnitsOfAnIdleTenantThatHoldsTheGpu) {
  Claim idle = busy(2);
  idle.active = false;
  const std::vector<Share> shares =
      shares_of(gpu(Policy::kWeighted), std::vector{busy(1), busy(1), idle});
  EXPECT_EQ(shares[0], (Share{25, true}));
  EXPECT_EQ(shares[2], (Share{50, true}));
}

TEST(Policy3Fixed, GivesWeightTimesUnitOrTheCoresAskedFor) {
  const std::vector<Share> shares =
      shares_of(gpu(Policy::kFixed), std::vector{busy(1), busy(3), busy(1, 12.5)});
  EXPECT_EQ(shares, (std::vector<Share>{{5, true}, {15, true}, {12.5, true}}));
}

TEST(Policy4Soft, LendsIdleTime) {
  const std::vector<Share> shares =
      shares_of(gpu(Policy::kSoft), std::vector{busy(1), busy(1), without_process(2)});
  EXPECT_EQ(shares, (std::vector<Share>{{25, false}, {25, false}, {50, false}}));
}

TEST(Burst, GuaranteesCoresAndSharesTheRestByWeight) {
  EXPECT_EQ(percents(gpu(Policy::kBurst), {busy(1, 40), busy(1), busy(3)}), (Percents{40, 15, 45}));
}

TEST(Burst, LeavesNobodyWithLessThanOnePercent) {
  EXPECT_EQ(percents(gpu(Policy::kBurst), {busy(1, 60), busy(1, 40), busy()}),
            (Percents{60, 40, 1}));
}

TEST(Burst, CapsALeaseThatAskedForIt) {
  Claim capped = busy(1, 30);
  capped.terms.capped = true;
  EXPECT_EQ(shares_of(gpu(Policy::kBurst), std::vector{capped, busy(1, 70)}),
            (std::vector<Share>{{30, true}, {70, false}}));
}

TEST(BestEffort, DividesEquallyAndLends) {
  EXPECT_EQ(shares_of(gpu(Policy::kBestEffort), std::vector{busy(3), busy(1)}),
            (std::vector<Share>{{50, false}, {50, false}}));
}

TEST(PrioRatio, GivesTheOnlineTenantItsRatioAndTheOthersTheRest) {
  EXPECT_EQ(percents(gpu(Policy::kPreemptive, 80), {online(), busy(), busy()}),
            (Percents{80, 10, 10}));
}

TEST(PrioRatio, LeavesAllToTheOthersWhileTheOnlineTenantIsIdle) {
  const Percents shares =
      percents(gpu(Policy::kPreemptive, 80), {online(1, false), busy(), busy()});
  EXPECT_EQ(shares[1], 50);
  EXPECT_EQ(shares[2], 50);
}

TEST(PrioRatio, SplitsTheRatioAmongOnlineTenantsByWeight) {
  EXPECT_EQ(percents(gpu(Policy::kSoft, 60), {online(1), online(2), busy(1), busy(3)}),
            (Percents{20, 40, 10, 30}));
}

TEST(PrioRatio, WorksWithFixedSharesToo) {
  EXPECT_EQ(percents(gpu(Policy::kFixed, 20), {online(), busy(1), busy(3)}), (Percents{20, 4, 12}));
}

TEST(Terms, RefusesWhatIsOutOfRangeAndSaysWhatIsNot) {
  EXPECT_TRUE(check(gpu(Policy::kFair)));
  EXPECT_FALSE(check(GpuTerms{.max_inst = 0}));
  EXPECT_FALSE(check(GpuTerms{.max_inst = 26}));
  EXPECT_FALSE(check(GpuTerms{.prio_ratio = 19}));
  EXPECT_FALSE(check(GpuTerms{.prio_ratio = 100}));
  EXPECT_FALSE(check(GpuTerms{.release = -1}));
  EXPECT_TRUE(check(TenantTerms{.weight = 20}, gpu(Policy::kSoft)));
  const Status heavy = check(TenantTerms{.weight = 21}, gpu(Policy::kSoft));
  ASSERT_FALSE(heavy);
  EXPECT_NE(heavy.error().message.find("from 1 to max-inst (20)"), std::string::npos);
  EXPECT_FALSE(check(TenantTerms{.cores_percent = 101}, gpu(Policy::kBurst)));
  EXPECT_FALSE(check(TenantTerms{.capped = true}, gpu(Policy::kBurst)));
}

}  // namespace
}  // namespace aliquot::gate
