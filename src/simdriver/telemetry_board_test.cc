#include "simdriver/telemetry_board.h"

#include <gtest/gtest.h>

#include "simdriver/presets.h"

namespace aliquot::simdriver {
namespace {

class Board : public testing::Test {
 protected:
  GpuTelemetry told(unsigned gpu) const {
    GpuTelemetry out{};
    board_.fill(gpu, out);
    return out;
  }
  bool set(Setting setting, std::uint64_t value) { return board_.apply({0, setting, value}); }
  bool fail(FaultKind kind, std::uint64_t value, unsigned gpu = 0) {
    return board_.apply({gpu, kind, value});
  }
  MachineSpec machine_ =
      *make_machine({.node = "a100x2", .name = "lab", .cuda = ""}, *simulator_directory());
  TelemetryBoard board_{machine_};
};

TEST_F(Board, TakesSettingsWithinTheModelsLimits) {
  EXPECT_TRUE(set(Setting::kPowerLimitMw, 250'000));
  EXPECT_FALSE(set(Setting::kPowerLimitMw, 99'999));
  EXPECT_FALSE(set(Setting::kPowerLimitMw, 400'001));
  EXPECT_TRUE(set(Setting::kClockLimitMhz, 1200));
  EXPECT_FALSE(set(Setting::kClockLimitMhz, 1411));
  EXPECT_TRUE(set(Setting::kComputeMode, 3));
  EXPECT_FALSE(set(Setting::kComputeMode, 1));
  EXPECT_FALSE(set(Setting::kComputeMode, 1ull << 32 | 3));
  EXPECT_EQ(told(0).power_limit_mw, 250'000u);
  EXPECT_EQ(told(0).clock_limit_mhz, 1200u);
  EXPECT_EQ(told(0).compute_mode, 3u);
  EXPECT_EQ(told(1).compute_mode, 0u);
  EXPECT_FALSE(board_.apply(SetRequest{2, Setting::kPersistence, 1}));
}

TEST_F(Board, CountsEccErrorsUntilCleared) {
  EXPECT_TRUE(fail(FaultKind::kEccSingle, 3));
  EXPECT_TRUE(fail(FaultKind::kEccDouble, 1));
  EXPECT_EQ(told(0).ecc_volatile.corrected, 3u);
  EXPECT_EQ(told(0).ecc_aggregate.uncorrected, 1u);
  EXPECT_TRUE(set(Setting::kClearEcc, 0));
  EXPECT_EQ(told(0).ecc_volatile.corrected, 0u);
  EXPECT_EQ(told(0).ecc_aggregate.corrected, 3u);
}

TEST_F(Board, ALostGpuComesBackWhenTheFaultIsLifted) {
  EXPECT_TRUE(fail(FaultKind::kGpuLost, 0, 1));
  EXPECT_EQ(told(1).lost, 1u);
  EXPECT_EQ(told(0).lost, 0u);
  EXPECT_EQ(board_.events_after(0).at(0).data, 79u);
  EXPECT_TRUE(fail(FaultKind::kNone, 0, 1));
  EXPECT_EQ(told(1).lost, 0u);
}

TEST_F(Board, HeatIsToldUntilItIsLifted) {
  EXPECT_TRUE(fail(FaultKind::kHeat, 95, 1));
  EXPECT_EQ(told(1).heat_c, 95u);
  EXPECT_EQ(told(0).heat_c, 0u);
  EXPECT_TRUE(fail(FaultKind::kHeat, 0, 1));
  EXPECT_EQ(told(1).heat_c, 0u);
  EXPECT_TRUE(fail(FaultKind::kHeat, 95, 1));
  EXPECT_TRUE(fail(FaultKind::kNone, 0, 1));
  EXPECT_EQ(told(1).heat_c, 0u);
}

TEST_F(Board, ARowsRemappingStandsUntilItIsLiftedAndItsCountStays) {
  const auto remap = [&](RowRemap what) {
    EXPECT_TRUE(fail(FaultKind::kRowRemap, static_cast<std::uint64_t>(what), 1));
  };
  remap(RowRemap::kPending);
  EXPECT_TRUE(stands(told(1), RowRemap::kPending));
  EXPECT_FALSE(stands(told(1), RowRemap::kFailed));
  EXPECT_EQ(told(1).rows_remapped, 1u);
  EXPECT_EQ(told(0).rows_remapped, 0u);
  remap(RowRemap::kFailed);
  EXPECT_TRUE(stands(told(1), RowRemap::kPending));
  EXPECT_TRUE(stands(told(1), RowRemap::kFailed));
  EXPECT_EQ(told(1).rows_remapped, 8u);  // all of a bank
  remap(RowRemap::kFailed);
  EXPECT_EQ(told(1).rows_remapped, 8u);  // of one that had none left already
  EXPECT_TRUE(fail(FaultKind::kNone, 0, 1));
  EXPECT_EQ(told(1).row_remap, 0u);
  EXPECT_EQ(told(1).rows_remapped, 8u);
}

TEST_F(Board, SpareRowsRunOut) {
  const auto pending = static_cast<std::uint64_t>(RowRemap::kPending);
  for (int row = 0; row < 512; ++row) ASSERT_TRUE(fail(FaultKind::kRowRemap, pending)) << row;
  EXPECT_FALSE(fail(FaultKind::kRowRemap, pending));
  EXPECT_TRUE(fail(FaultKind::kRowRemap, static_cast<std::uint64_t>(RowRemap::kFailed)));
  EXPECT_EQ(told(0).rows_remapped, 512u);
}

TEST_F(Board, ErrorsOfALinkGrowUntilTheyAreCleared) {
  EXPECT_TRUE(fail(FaultKind::kLinkErrors, errors_of_link(11, 5), 1));
  EXPECT_TRUE(fail(FaultKind::kLinkErrors, errors_of_link(11, 0xffffffff), 1));
  EXPECT_EQ(told(1).link_errors[11], 0x100000004u);
  EXPECT_EQ(told(1).link_errors[10], 0u);
  EXPECT_EQ(told(0).link_errors[11], 0u);
  EXPECT_TRUE(fail(FaultKind::kNone, 0, 1));
  EXPECT_EQ(told(1).link_errors[11], 0x100000004u);
  EXPECT_TRUE(board_.apply(SetRequest{1, Setting::kClearLinkErrors, 11}));
  EXPECT_EQ(told(1).link_errors[11], 0u);
  EXPECT_FALSE(board_.apply(SetRequest{1, Setting::kClearLinkErrors, 32}));
}

TEST_F(Board, RefusesToBreakWhatTheGpuHasNot) {
  EXPECT_FALSE(fail(FaultKind::kRowRemap, 0));
  EXPECT_FALSE(fail(FaultKind::kRowRemap, 3));
  EXPECT_FALSE(fail(FaultKind::kLinkErrors, errors_of_link(12, 1)));
  EXPECT_FALSE(fail(FaultKind::kHeat, 151));
  EXPECT_FALSE(fail(FaultKind::kLinkDown, 1u << 12));
  EXPECT_TRUE(fail(FaultKind::kLinkDown, 1u << 11));
  const MachineSpec gaming =
      *make_machine({.node = "rtx4090x1", .name = "", .cuda = ""}, *simulator_directory());
  TelemetryBoard board(gaming);
  EXPECT_FALSE(board.apply(FaultRequest{0, FaultKind::kEccSingle, 1}));
  EXPECT_FALSE(board.apply(FaultRequest{0, FaultKind::kRowRemap, 1}));
  EXPECT_FALSE(board.apply(FaultRequest{0, FaultKind::kLinkErrors, 1}));
  // Before Ampere no row is remapped; links without a peer lead nowhere.
  MachineSpec volta =
      *make_machine({.node = "dgx1-v100", .name = "", .cuda = ""}, *simulator_directory());
  volta.nvlinks[0].assign(volta.gpus.size(), 0);
  TelemetryBoard apart(volta);
  EXPECT_FALSE(apart.apply(FaultRequest{0, FaultKind::kRowRemap, 1}));
  EXPECT_FALSE(apart.apply(FaultRequest{0, FaultKind::kLinkErrors, errors_of_link(0, 1)}));
  EXPECT_TRUE(apart.apply(FaultRequest{1, FaultKind::kLinkErrors, errors_of_link(0, 1)}));
}

TEST_F(Board, KeepsEventsInOrderAndForgetsTheOldest) {
  for (std::uint64_t xid = 1; xid <= 300; ++xid) board_.report_xid(0, xid);
  EXPECT_EQ(board_.newest_event(), 300u);
  EXPECT_EQ(board_.events_after(0).size(), 256u);
  EXPECT_EQ(board_.events_after(0).front().serial, 45u);
  EXPECT_EQ(board_.events_after(298).size(), 2u);
  EXPECT_TRUE(board_.events_after(300).empty());
}

}  // namespace
}  // namespace aliquot::simdriver
