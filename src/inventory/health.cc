#include "inventory/health.h"

#include <algorithm>

#include "inventory/xids.h"

namespace aliquot::inventory {
namespace {

// A doubt is settled, and a recovery confirmed, four times sooner than the next ordinary probe.
constexpr Nanoseconds kHurry = 4;
constexpr unsigned kXidOffBus = 79;

}  // namespace

void GpuHealth::on_probe(const HealthReading& reading, Nanoseconds now) {
  last_probe_ = now;
  if (reading.off_bus) {
    note(HealthCause::kOffBus, true, "the driver says that the GPU is lost", now);
  } else if (!reading.answered) {
    const bool again = find(HealthCause::kSilent) != nullptr;
    note(HealthCause::kSilent, again, "does not answer", now);
  } else {
    answered_ = now;
    clear(HealthCause::kOffBus);
    clear(HealthCause::kSilent);
    read_memory(reading, now);
    read_links(reading, now);
    read_heat(reading, now);
    forget_quiet(now);
  }
  settle(true, now);
}

void GpuHealth::on_xid(unsigned number, Nanoseconds now) {
  XidCount& seen = xids_[number];
  ++seen.count;
  seen.last = now;
  const Xid xid = describe_xid(number);
  if (xid.klass == XidClass::kApplication) return;
  // Whether a GPU is off the bus the next probe can tell; of other XIDs none can.
  note(number == kXidOffBus ? HealthCause::kOffBus : HealthCause::kXid, true,
       "XID " + std::to_string(number) + ": " + std::string(xid.what) +
           (xid.needs_reset ? " (a reset of the GPU helps)" : ""),
       now);
  settle(false, now);
}

void GpuHealth::read_memory(const HealthReading& reading, Nanoseconds now) {
  if (reading.uncorrected) {
    const std::uint64_t count = *reading.uncorrected;
    // The first reading is a start, not a growth; a smaller one means that the driver came anew.
    if (uncorrected_ && count > *uncorrected_)
      note(HealthCause::kUncorrected, true,
           std::to_string(count) + " uncorrectable ECC errors, were " +
               std::to_string(*uncorrected_),
           now);
    else if (uncorrected_ && count < *uncorrected_)
      clear(HealthCause::kUncorrected);
    uncorrected_ = count;
  }
  if (reading.remap_failed.value_or(false))
    note(HealthCause::kRemapFailed, true, "a row of memory could not be remapped", now);
  else
    clear(HealthCause::kRemapFailed);
  if (reading.remap_pending.value_or(false))
    note(HealthCause::kRemapPending, false, "a remapped row waits for a reset of the GPU", now);
  else
    clear(HealthCause::kRemapPending);
}

void GpuHealth::read_links(const HealthReading& reading, Nanoseconds now) {
  nvlinks_up_.resize(std::max(nvlinks_up_.size(), reading.nvlinks_up.size()));
  std::string down;
  for (std::size_t link = 0; link < reading.nvlinks_up.size(); ++link) {
    if (reading.nvlinks_up[link])
      nvlinks_up_[link] = true;
    else if (nvlinks_up_[link])
      down += (down.empty() ? "NVLink " : ", ") + std::to_string(link);
  }
  const bool growing =
      reading.nvlink_errors && nvlink_errors_ && *reading.nvlink_errors > *nvlink_errors_;
  if (!down.empty())
    note(HealthCause::kNvlink, true, down + " went down", now);
  else if (growing)  // once may be a stray bit, twice running is a bad link
    note(HealthCause::kNvlink, find(HealthCause::kNvlink) != nullptr,
         std::to_string(*reading.nvlink_errors - *nvlink_errors_) + " new errors on NVLinks", now);
  else
    clear(HealthCause::kNvlink);
  if (reading.nvlink_errors) nvlink_errors_ = reading.nvlink_errors;
}

void GpuHealth::read_heat(const HealthReading& reading, Nanoseconds now) {
  if (!reading.temperature_c || !reading.slowdown_c) return clear(HealthCause::kHeat);
  const unsigned limit = *reading.slowdown_c;
  const bool hot = find(HealthCause::kHeat) != nullptr;
  if (*reading.temperature_c + (hot ? options_.heat_margin_c : 0) >= limit)
    note(HealthCause::kHeat, true,
         std::to_string(*reading.temperature_c) + " C, slows down at " + std::to_string(limit),
         now);
  else
    clear(HealthCause::kHeat);
}

void GpuHealth::forget_quiet(Nanoseconds now) {
  std::erase_if(faults_, [&](const HealthFault& fault) {
    return (fault.cause == HealthCause::kXid || fault.cause == HealthCause::kUncorrected) &&
           now - fault.last_seen >= options_.quiet;
  });
}

// The state that the faults ask for; the way back to healthy leads through recovering.
void GpuHealth::settle(bool probed, Nanoseconds now) {
  const bool sure = std::ranges::any_of(faults_, &HealthFault::sure);
  const HealthFault* silent = find(HealthCause::kSilent);
  const bool lost = find(HealthCause::kOffBus) != nullptr || (silent != nullptr && silent->sure);
  if (sure) {
    good_in_a_row_ = 0;
    return enter(lost ? HealthState::kLost : HealthState::kUnhealthy, now);
  }
  if (usable()) return enter(faults_.empty() ? HealthState::kHealthy : HealthState::kSuspect, now);
  // It was out. A doubt (one probe without an answer) starts the count anew.
  if (silent != nullptr) good_in_a_row_ = 0;
  if (!probed || silent != nullptr) return;
  enter(HealthState::kRecovering, now);
  if (++good_in_a_row_ < good_probes_needed()) return;
  recovered_ = now;
  enter(faults_.empty() ? HealthState::kHealthy : HealthState::kSuspect, now);
}

void GpuHealth::enter(HealthState state, Nanoseconds now) {
  if (state == state_) return;
  const bool goes_out =
      usable() && state != HealthState::kHealthy && state != HealthState::kSuspect;
  if (goes_out) {
    const bool soon = recovered_ && now - *recovered_ < options_.relapse_window;
    relapses_ = soon ? relapses_ + 1 : 0;
  }
  state_ = state;
  since_ = now;
}

Nanoseconds GpuHealth::next_probe() const {
  // A pending remap stays until somebody resets the GPU: no reason to hurry.
  const bool settled = std::ranges::all_of(
      faults_, [](const HealthFault& fault) { return fault.cause == HealthCause::kRemapPending; });
  return last_probe_ + (usable() && settled ? options_.interval : options_.interval / kHurry);
}

unsigned GpuHealth::good_probes_needed() const {
  const unsigned doubled = options_.good_probes_to_recover << std::min(relapses_, 16u);
  return std::min(doubled, options_.most_good_probes);
}

const HealthFault* GpuHealth::find(HealthCause cause) const {
  const auto found = std::ranges::find(faults_, cause, &HealthFault::cause);
  return found == faults_.end() ? nullptr : &*found;
}

void GpuHealth::note(HealthCause cause, bool sure, std::string evidence, Nanoseconds now) {
  const auto found = std::ranges::find(faults_, cause, &HealthFault::cause);
  if (found == faults_.end()) {
    faults_.push_back({cause, now, now, sure, std::move(evidence)});
    return;
  }
  found->last_seen = now;
  found->sure = sure;
  found->evidence = std::move(evidence);
}

void GpuHealth::clear(HealthCause cause) {
  std::erase_if(faults_, [&](const HealthFault& fault) { return fault.cause == cause; });
}

std::string_view name_of(HealthState state) {
  switch (state) {
    case HealthState::kHealthy:
      return "healthy";
    case HealthState::kSuspect:
      return "suspect";
    case HealthState::kUnhealthy:
      return "unhealthy";
    case HealthState::kLost:
      return "lost";
    case HealthState::kRecovering:
      return "recovering";
  }
  return "";
}

std::string_view name_of(HealthCause cause) {
  switch (cause) {
    case HealthCause::kSilent:
      return "silent";
    case HealthCause::kOffBus:
      return "off_bus";
    case HealthCause::kXid:
      return "xid";
    case HealthCause::kUncorrected:
      return "ecc_uncorrected";
    case HealthCause::kRemapFailed:
      return "remap_failed";
    case HealthCause::kRemapPending:
      return "remap_pending";
    case HealthCause::kNvlink:
      return "nvlink";
    case HealthCause::kHeat:
      return "heat";
  }
  return "";
}

}  // namespace aliquot::inventory
