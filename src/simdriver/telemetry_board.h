// What an administrator set and what was broken on command, per GPU of a machine: the part of a
// GpuTelemetry that does not come from books or engine, and the events that NVML reports.
//
// Leaves to others: acting on it (contexts lost by an XID), the channel. Pure; the
// server's loop only, or one thread of a test.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "simdriver/machine_spec.h"
#include "simdriver/mig_layout.h"
#include "simdriver/telemetry.h"

namespace aliquot::simdriver {

class TelemetryBoard {
 public:
  explicit TelemetryBoard(const MachineSpec& machine);

  // Writes settings, faults and error counts of `gpu` into `out`; the rest stays.
  void fill(unsigned gpu, GpuTelemetry& out) const;

  // False: no such GPU, or a value that the model does not take.
  bool apply(const SetRequest& request);
  bool apply(const FaultRequest& request);
  // `gpu` must be one of the machine's. `id` is that of what was created.
  MigResult apply(const MigChange& change, std::uint32_t& id);
  bool mig_on(unsigned gpu) const { return gpus_[gpu].mig.on(); }
  std::vector<MigPart> mig_parts(unsigned gpu) const;
  const MigLayout& mig(unsigned gpu) const { return gpus_[gpu].mig; }
  // An XID from elsewhere (the engine); told as an event.
  void report_xid(unsigned gpu, std::uint64_t xid);

  // For whoever opens contexts; a mode is NVML's number.
  std::uint32_t compute_mode(unsigned gpu) const { return gpus_[gpu].compute_mode; }
  bool lost(unsigned gpu) const { return gpus_[gpu].lost; }

  // Events after `serial`, oldest first. The last 256 are kept.
  std::vector<GpuEvent> events_after(std::uint64_t serial) const;
  std::uint64_t newest_event() const { return newest_; }

 private:
  struct Gpu {
    explicit Gpu(MigLayout layout) : mig(std::move(layout)) {}
    MigLayout mig;
    Power power;
    Clocks clocks;
    unsigned nvlinks = 0;     // that lead somewhere
    unsigned spare_rows = 0;  // that can be used; 0: remaps none
    bool ecc = false;
    EccCounts ecc_volatile{};
    EccCounts ecc_aggregate{};
    std::array<std::uint64_t, kMostNvlinks> link_errors{};
    std::uint32_t power_limit_mw = 0;
    std::uint32_t clock_limit_mhz = 0;
    std::uint32_t compute_mode = 0;
    std::uint32_t persistence = 1;
    std::uint32_t accounting = 0;
    std::uint32_t links_down = 0;
    std::uint32_t hang_ms = 0;
    std::uint32_t heat_c = 0;
    std::uint32_t rows_remapped = 0;
    std::uint32_t row_remap = 0;
    bool lost = false;
  };
  static bool remap_row(Gpu& gpu, std::uint64_t what);
  static bool add_link_errors(Gpu& gpu, std::uint64_t link, std::uint64_t count);
  void add_event(unsigned gpu, GpuEventKind kind, std::uint64_t data);

  std::vector<Gpu> gpus_;
  std::vector<GpuEvent> events_;
  std::uint64_t newest_ = 0;
};

}  // namespace aliquot::simdriver
