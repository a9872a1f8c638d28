// Cells of the share matrix on a GPU, simulated or real: tenants as programs of their own in
// leases, and what the device itself says they got. Real time, or a simulated machine's slow
// motion.
//
// The cells are those of the virtual-time twin (replay/gate_cells.h), so the two can be held
// against each other. One thread, and one that measures how late this host wakes sleepers.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "cli/device_account.h"
#include "common/clock.h"
#include "common/result.h"
#include "replay/gate_cells.h"

namespace aliquot::cli {

struct CellMachine {
  DeviceAccount& account;
  std::string simulated;  // the machine's name; empty: the real driver
  unsigned gpu = 0;
  double slowness = 1;  // real nanoseconds for one of the machine's
};

// What happens to the first tenant of a cell when all are at work.
enum class CellEvent : std::uint8_t { kNone, kArrival, kLeave, kResize };

struct MeasuredCell {
  std::string name;
  std::vector<double> targets, shares;  // percent of the device's time, by tenant
  double mean_error = 0, worst_error = 0;
  double busy_percent = 0;
  // Most that a tenant was ahead of its share of what all had used, or behind it, since the
  // warm-up or the event, in the machine's time. On a real GPU as coarse as the driver's samples.
  double largest_lag_ms = 0;
  double allowed_lag_ms = 0;  // of a gate that keeps its bound (replay/gate_cells.h)
  double wake_p99_us = 0;     // how late this host woke a sleeper meanwhile
  bool valid = false;         // the host was quick enough for the figures to mean the gate
};

// The cells by which a gate is judged: 24 in slow motion, 12 in real time.
std::vector<std::string> slow_motion_cells();
std::vector<std::string> real_time_cells();
// Errc::kNotFound: no cell has this name.
Result<replay::GateCell> cell_called(std::string_view name);

// `machine_time` of device time after a warm-up of a second and the event: the first tenant comes
// only now, leaves, or is resized to a third. Measured are those that are there then, against the
// shares that the broker gives them. `program` is aliquot itself.
Result<MeasuredCell> measure_cell(const std::filesystem::path& program, const CellMachine& where,
                                  const replay::GateCell& cell, CellEvent event,
                                  Nanoseconds machine_time);

// Of a tenant with these processes, between two readings: the time its kernels ran, and what
// switches among its own processes cost, which is its own time too (as in the twin). Pure.
Nanoseconds used_by(const std::vector<std::int32_t>& pids, const simdriver::DeviceUse& before,
                    const simdriver::DeviceUse& after);
Nanoseconds switching_among(const std::vector<std::int32_t>& pids,
                            const simdriver::DeviceUse& before, const simdriver::DeviceUse& after);

// From what the device said at begin and end. Pure.
void judge(MeasuredCell& cell);

// The words after `aliquot burn` for a tenant of a cell. Pure.
std::vector<std::string> load_of(const replay::TwinTenant& tenant, double seconds, unsigned seed);

}  // namespace aliquot::cli
