// All 405 cells of the share matrix. Simulated.
#include <gtest/gtest.h>

#include "replay/gate_cells.h"

namespace aliquot::replay {
namespace {

Nanoseconds longest_kernel(const GateCell& cell) {
  if (cell.kernel == "50ms" || cell.kernel == "mix50us" || cell.kernel == "pareto") {
    return 50 * kMillisecond;
  }
  // "hetero" has 5 ms with a spread of 0.3: three times that is rare enough.
  if (cell.kernel == "hetero") return 15 * kMillisecond;
  return cell.kernel == "5ms" || cell.kernel == "mix5us" ? 5 * kMillisecond : 500 * kMicrosecond;
}

TEST(GateMatrix, AllCellsKeepTheirSharesAndTheDeviceBusy) {
  double sum = 0;
  double busy = 0;
  const std::vector<GateCell> cells = gate_matrix();
  ASSERT_EQ(cells.size(), 405u);
  for (const GateCell& cell : cells) {
    const CellResult result = run_cell(cell, TwinOptions{});
    sum += result.mean_error;
    busy += result.busy_percent;
    EXPECT_LE(result.worst_error, 2.0) << cell.name;
    EXPECT_GE(result.busy_percent, 98.0) << cell.name;
    // Windows are 15 ms at most, or one kernel; two processes have two kernels in flight.
    const double k = static_cast<double>(longest_kernel(cell)) / 1e6;
    EXPECT_LE(result.largest_lag_ms, 2 * std::max(15.0, k) + 3 * k) << cell.name;
  }
  EXPECT_LE(sum / 405, 0.25);
  EXPECT_GE(busy / 405, 99.3);
}

}  // namespace
}  // namespace aliquot::replay
