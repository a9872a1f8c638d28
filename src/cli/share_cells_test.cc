// Cells of the share matrix as commands, and how they are judged.
#include "cli/share_cells.h"

#include <gtest/gtest.h>

#include <set>

#include "cli/burn_load.h"

namespace aliquot::cli {
namespace {

TEST(ShareCells, ThereAreTwelveForRealTimeAndTwentyFourForSlowMotion) {
  const std::vector<std::string> slow = slow_motion_cells();
  EXPECT_EQ(real_time_cells().size(), 12u);
  EXPECT_EQ(std::set<std::string>(slow.begin(), slow.end()).size(), 24u);
  for (const std::string& name : slow) EXPECT_TRUE(cell_called(name)) << name;
}

TEST(ShareCells, AnUnknownCellIsAnErrorThatSaysWhereTheNamesAre) {
  const auto cell = cell_called("n3");
  ASSERT_FALSE(cell);
  EXPECT_NE(cell.error().message.find("--list"), std::string::npos);
}

TEST(ShareCells, ATenantBecomesABurnWithTheSameKernels) {
  const auto cell = cell_called("n4-skewed/kmix50us/d64/streams4");
  ASSERT_TRUE(cell);
  const std::vector<std::string> words = load_of(cell->specs[0], 12.4, 3);
  EXPECT_EQ(words, (std::vector<std::string>{
                       "--kernels", "50us:0.7,500us:0.2,5000us:0.08,50000us:0.02", "--depth", "16",
                       "--streams", "4", "--seconds", "12", "--seed", "3"}));
}

TEST(ShareCells, EveryKernelsTextOfTheMatrixIsRead) {
  for (const replay::GateCell& cell : replay::gate_matrix())
    for (const replay::TwinTenant& tenant : cell.specs) {
      const auto mix = parse_mix(load_of(tenant, 1, 1)[1]);
      ASSERT_TRUE(mix) << cell.name << ": " << mix.error().message;
      ASSERT_EQ(mix->classes.size(), tenant.mix.classes.size());
      EXPECT_EQ(mix->classes[0].kernel, tenant.mix.classes[0].duration_ns);
      EXPECT_EQ(mix->pareto, tenant.mix.pareto);
      EXPECT_EQ(mix->sigma, tenant.mix.sigma);
    }
}

TEST(ShareCells, WhatIsNoMixIsRefused) {
  for (const char* text : {"", "50", "50us:0.5", "50us:2", "-1us", "5us:x", "5us,6us", "0us"})
    EXPECT_FALSE(parse_mix(text)) << text;
}

TEST(ShareCells, ATenantPaysForSwitchesAmongItsOwnProcessesAlone) {
  simdriver::DeviceUse before, after;
  before.of = {{11, 100}, {12, 200}};
  after.of = {{11, 150}, {12, 280}, {13, 500}};
  before.switching = {{{11, 12}, 7}};
  after.switching = {{{11, 12}, 10}, {{12, 11}, 5}, {{12, 13}, 1000}, {{13, 11}, 1000}};
  EXPECT_EQ(used_by({11, 12}, before, after), 130);
  EXPECT_EQ(switching_among({11, 12}, before, after), 8);
  EXPECT_EQ(switching_among({13}, before, after), 0);
}

TEST(ShareCells, ErrorsAreInPointsOfTheDevicesTime) {
  MeasuredCell cell;
  cell.targets = {30, 70};
  cell.shares = {29, 68};
  judge(cell);
  EXPECT_DOUBLE_EQ(cell.mean_error, 1.5);
  EXPECT_DOUBLE_EQ(cell.worst_error, 2);
}

}  // namespace
}  // namespace aliquot::cli
