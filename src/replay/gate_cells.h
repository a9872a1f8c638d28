// The cells by which the compute gate is judged: 405 settings of tenants, and what the twin
// measures in one of them. Simulated. Pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "replay/gate_twin.h"

namespace aliquot::replay {

struct GateCell {
  std::string name;  // "n4-skewed/k500us/d64/plain"
  std::size_t tenants = 0;
  std::string kernel;  // "5us", ..., "pareto", "hetero"
  std::vector<double> shares;
  std::vector<TwinTenant> specs;
};

// 9 share vectors of 2, 4, 8 and 16 tenants from 5 to 95 %; kernels of 5 us to 50 ms, mixes, a
// heavy tail, different ones side by side; depths 4, 64, 1000; one stream, four, two processes.
std::vector<GateCell> gate_matrix();
// Every tenth or so of them, each kernel, size and shape among them.
std::vector<GateCell> named_gate_cells();

// The cell as a policy that does not ask for cores divides it: soft by weights that come near the
// shares, best-effort evenly. Its name begins with the policy's.
GateCell under_policy(const GateCell& cell, gate::Policy policy);

struct CellResult {
  double mean_error = 0;  // points of share, against busy / wall
  double worst_error = 0;
  double busy_percent = 0;
  double longest_wait_ms = 0;
  double largest_lag_ms = 0;  // against the fluid share, from the end of the warm-up on
  double steps_per_second = 0;
};

// The largest |had - share of what all had|, by tenants; in the unit of `had`. An idle device is
// nobody's lag.
double largest_lag(const std::vector<double>& had, const std::vector<double>& percent);
// How far from its fluid share a tenant of the cell may be: 2 q + 3 K, for windows of q (11 ms, 15
// where a kernel's end cannot be foretold, or one kernel) and kernels of K at most.
double allowed_lag_ms(const GateCell& cell);

CellResult run_cell(const GateCell& cell, const TwinOptions& options);

}  // namespace aliquot::replay
