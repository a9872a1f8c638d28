#include "simdriver/telemetry_board.h"

#include <algorithm>
#include <numeric>

namespace aliquot::simdriver {
namespace {

constexpr std::size_t kEventsKept = 256;
constexpr std::uint64_t kLongestHangMs = 60'000;
constexpr std::uint64_t kHottestC = 150;     // nothing would answer any more
constexpr unsigned kMostRowsRemapped = 512;  // of one GPU, however many spare ones it has
// NVML_COMPUTEMODE_: default, prohibited, exclusive process; 1 (exclusive thread) is gone.
bool is_compute_mode(std::uint64_t mode) { return mode == 0 || mode == 2 || mode == 3; }

// Without a switch, a link without a peer leads nowhere.
unsigned links_in_use(const MachineSpec& machine, unsigned gpu) {
  if (machine.nvswitch) return machine.model_of(gpu).nvlink.links;
  const std::vector<unsigned>& peers = machine.nvlinks[gpu];
  return std::accumulate(peers.begin(), peers.end(), 0u);
}

}  // namespace

TelemetryBoard::TelemetryBoard(const MachineSpec& machine) {
  for (unsigned i = 0; i < machine.gpus.size(); ++i) {
    const GpuModel& model = machine.model_of(i);
    Gpu& gpu = gpus_.emplace_back(MigLayout(model.mig));
    gpu.power = model.power;
    gpu.clocks = model.clocks;
    gpu.nvlinks = links_in_use(machine, i);
    gpu.ecc = model.ecc;
    if (remaps_rows(model))
      gpu.spare_rows = std::min(kMostRowsRemapped, memory_banks(model) * kSpareRowsOfBank);
  }
}

void TelemetryBoard::fill(unsigned index, GpuTelemetry& out) const {
  const Gpu& gpu = gpus_[index];
  out.ecc_volatile = gpu.ecc_volatile;
  out.ecc_aggregate = gpu.ecc_aggregate;
  out.link_errors = gpu.link_errors;
  out.power_limit_mw = gpu.power_limit_mw;
  out.clock_limit_mhz = gpu.clock_limit_mhz;
  out.compute_mode = gpu.compute_mode;
  out.persistence = gpu.persistence;
  out.accounting = gpu.accounting;
  out.lost = gpu.lost ? 1 : 0;
  out.links_down = gpu.links_down;
  out.hang_ms = gpu.hang_ms;
  out.heat_c = gpu.heat_c;
  out.rows_remapped = gpu.rows_remapped;
  out.row_remap = gpu.row_remap;
}

bool TelemetryBoard::apply(const SetRequest& request) {
  if (request.gpu >= gpus_.size()) return false;
  Gpu& gpu = gpus_[request.gpu];
  const auto value = static_cast<std::uint32_t>(request.value);
  if (value != request.value) return false;
  switch (request.setting) {
    case Setting::kPowerLimitMw:
      if (value != 0 && (value < gpu.power.limit_min_mw || value > gpu.power.limit_max_mw))
        return false;
      gpu.power_limit_mw = value;
      return true;
    case Setting::kClockLimitMhz:
      if (value != 0 &&
          (value < gpu.clocks.graphics_min_mhz || value > gpu.clocks.graphics_max_mhz))
        return false;
      gpu.clock_limit_mhz = value;
      return true;
    case Setting::kComputeMode:
      if (!is_compute_mode(value)) return false;
      gpu.compute_mode = value;
      return true;
    case Setting::kPersistence:
      gpu.persistence = value != 0 ? 1 : 0;
      return true;
    case Setting::kAccounting:
      gpu.accounting = value != 0 ? 1 : 0;
      return true;
    case Setting::kClearEcc:
      (value == 0 ? gpu.ecc_volatile : gpu.ecc_aggregate) = {};
      return true;
    case Setting::kClearLinkErrors:
      if (value >= kMostNvlinks) return false;
      gpu.link_errors[value] = 0;
      return true;
  }
  return false;
}

// Bank after bank gives its spare rows away; only one that has none left fails.
bool TelemetryBoard::remap_row(Gpu& gpu, std::uint64_t what) {
  if (what == static_cast<std::uint64_t>(RowRemap::kPending)) {
    if (gpu.rows_remapped == gpu.spare_rows) return false;
    gpu.rows_remapped += 1;
  } else if (what == static_cast<std::uint64_t>(RowRemap::kFailed)) {
    if (gpu.spare_rows == 0) return false;
    while (gpu.rows_remapped == 0 || gpu.rows_remapped % kSpareRowsOfBank != 0)
      gpu.rows_remapped += 1;
  } else {
    return false;
  }
  gpu.row_remap |= static_cast<std::uint32_t>(what);
  return true;
}

bool TelemetryBoard::add_link_errors(Gpu& gpu, std::uint64_t link, std::uint64_t count) {
  if (link >= gpu.nvlinks) return false;
  gpu.link_errors[link] += count;
  return true;
}

bool TelemetryBoard::apply(const FaultRequest& request) {
  if (request.gpu >= gpus_.size()) return false;
  Gpu& gpu = gpus_[request.gpu];
  switch (request.kind) {
    case FaultKind::kXid:
      report_xid(request.gpu, request.value);
      return true;
    case FaultKind::kGpuLost:
      gpu.lost = true;
      report_xid(request.gpu, 79);  // "GPU has fallen off the bus"
      return true;
    case FaultKind::kEccSingle:
      if (!gpu.ecc) return false;
      gpu.ecc_volatile.corrected += request.value;
      gpu.ecc_aggregate.corrected += request.value;
      add_event(request.gpu, GpuEventKind::kSingleBitEcc, request.value);
      return true;
    case FaultKind::kEccDouble:
      if (!gpu.ecc) return false;
      gpu.ecc_volatile.uncorrected += request.value;
      gpu.ecc_aggregate.uncorrected += request.value;
      add_event(request.gpu, GpuEventKind::kDoubleBitEcc, request.value);
      return true;
    case FaultKind::kLinkDown:
      if (request.value >> gpu.nvlinks != 0) return false;
      gpu.links_down = static_cast<std::uint32_t>(request.value);
      return true;
    case FaultKind::kNvmlHang:
      gpu.hang_ms = static_cast<std::uint32_t>(std::min(request.value, kLongestHangMs));
      return true;
    case FaultKind::kHeat:
      if (request.value > kHottestC) return false;
      gpu.heat_c = static_cast<std::uint32_t>(request.value);
      return true;
    case FaultKind::kRowRemap:
      return remap_row(gpu, request.value);
    case FaultKind::kLinkErrors:
      return add_link_errors(gpu, request.value >> 32, static_cast<std::uint32_t>(request.value));
    case FaultKind::kNone:
      gpu.lost = false;
      gpu.links_down = 0;
      gpu.hang_ms = 0;
      gpu.heat_c = 0;
      gpu.row_remap = 0;
      return true;
  }
  return false;
}

MigResult TelemetryBoard::apply(const MigChange& change, std::uint32_t& id) {
  MigLayout& mig = gpus_[change.gpu].mig;
  const auto start =
      change.second == kAnywhere ? std::nullopt : std::optional<unsigned>(change.second);
  switch (change.action) {
    case MigAction::kSwitchMode:
      return mig.switch_mode(change.first != 0);
    case MigAction::kCreate:
      return mig.create(change.first, start, id);
    case MigAction::kDestroy:
      return mig.destroy(change.first);
    case MigAction::kCreateCompute:
      return mig.create_compute(change.first, change.second, id);
    case MigAction::kDestroyCompute:
      return mig.destroy_compute(change.first, change.second);
  }
  return MigResult::kNoSuch;
}

std::vector<MigPart> TelemetryBoard::mig_parts(unsigned gpu) const {
  std::vector<MigPart> parts;
  for (const GpuInstance& it : gpus_[gpu].mig.gpu_instances())
    parts.push_back({it.id, kNoComputeInstance, it.profile, it.start, it.size, kNoDevice});
  for (const ComputeInstance& it : gpus_[gpu].mig.compute_instances())
    parts.push_back({it.gpu_instance, it.id, it.slices, it.start, it.slices, kNoDevice});
  return parts;
}

void TelemetryBoard::report_xid(unsigned gpu, std::uint64_t xid) {
  add_event(gpu, GpuEventKind::kXid, xid);
}

void TelemetryBoard::add_event(unsigned gpu, GpuEventKind kind, std::uint64_t data) {
  newest_ += 1;
  if (events_.size() == kEventsKept) events_.erase(events_.begin());
  events_.push_back({newest_, gpu, kind, data});
}

std::vector<GpuEvent> TelemetryBoard::events_after(std::uint64_t serial) const {
  const auto first = std::ranges::upper_bound(events_, serial, {}, &GpuEvent::serial);
  return {first, events_.end()};
}

}  // namespace aliquot::simdriver
