// All 405 cells of the share matrix, held to what the best arbiter known so far reached in them
// (docs/adr/0050-compute-gate.md): mean error 0.18, worst 1.25, busy 99.40 %, least 98.12.
// Simulated.
#include <gtest/gtest.h>

#include "replay/gate_cells.h"

namespace aliquot::replay {
namespace {

TEST(GateMatrix, AllCellsKeepTheirSharesAndTheDeviceBusy) {
  double sum = 0;
  double busy = 0;
  const std::vector<GateCell> cells = gate_matrix();
  ASSERT_EQ(cells.size(), 405u);
  for (const GateCell& cell : cells) {
    const CellResult result = run_cell(cell, TwinOptions{});
    sum += result.mean_error;
    busy += result.busy_percent;
    EXPECT_LE(result.worst_error, 1.25) << cell.name;
    EXPECT_GE(result.busy_percent, 98.12) << cell.name;
    EXPECT_LE(result.largest_lag_ms, allowed_lag_ms(cell)) << cell.name;
  }
  EXPECT_LE(sum / 405, 0.18);
  EXPECT_GE(busy / 405, 99.40);
}

TEST(GateMatrix, AllCellsStayNearTheirSharesForAMinute) {
  TwinOptions minute;
  minute.duration = minute.warmup + 60 * kSecond;
  for (const GateCell& cell : gate_matrix())
    EXPECT_LE(run_cell(cell, minute).largest_lag_ms, allowed_lag_ms(cell)) << cell.name;
}

TEST(GateMatrix, AllCellsKeepTheDeviceBusyUnderEveryPolicyThatLends) {
  for (const gate::Policy policy : {gate::Policy::kSoft, gate::Policy::kBestEffort}) {
    TwinOptions options;
    options.terms.policy = policy;
    double sum = 0;
    for (const GateCell& original : gate_matrix()) {
      const GateCell cell = under_policy(original, policy);
      const CellResult result = run_cell(cell, options);
      sum += result.mean_error;
      EXPECT_LE(result.worst_error, 2.0) << cell.name;
      EXPECT_GE(result.busy_percent, 98.0) << cell.name;
    }
    EXPECT_LE(sum / 405, 0.5) << static_cast<int>(policy);
  }
}

}  // namespace
}  // namespace aliquot::replay
