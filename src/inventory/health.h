// GpuHealth: whether one GPU (or MIG device) may be given to the next program, and why not.
//
//   healthy ── a doubt ──> suspect ── confirmed, or a sure fault ──> unhealthy
//      ^                      │ (good again)          silent twice, or off the bus ──> lost
//      └── good probes in a row ── recovering <── the cause is gone ──┘
//
// A fault is a cause with evidence; causes come from XIDs and probes and go when a probe shows
// them gone, so no state is final: whatever happened, enough good probes lead back to healthy.
// Each relapse soon after a recovery doubles the good probes asked for, up to a bound, so that a
// flapping GPU is neither given out again and again nor written off.
//
// Pure: time is an argument (any clock that does not go back). Leaves to others: asking the driver
// (nvml.h, one probe process per GPU), publishing. One thread.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/clock.h"

namespace aliquot::inventory {

enum class HealthState : std::uint8_t { kHealthy, kSuspect, kUnhealthy, kLost, kRecovering };
inline constexpr std::array kHealthStates = {HealthState::kHealthy, HealthState::kSuspect,
                                             HealthState::kUnhealthy, HealthState::kLost,
                                             HealthState::kRecovering};

enum class HealthCause : std::uint8_t {
  kSilent,        // a probe got no answer in its time
  kOffBus,        // the driver says the GPU is lost, or it left the PCI bus
  kXid,           // an XID of class driver or hardware
  kUncorrected,   // uncorrectable ECC errors have grown
  kRemapFailed,   // a row could not be remapped
  kRemapPending,  // a remapped row takes effect at the next reset: a doubt, no fault
  kNvlink,        // a link that was up is down, or errors grow at two probes running
  kHeat,          // at or above the temperature where the chip slows down
};

struct HealthOptions {
  Nanoseconds interval = 60 * kSecond;  // between probes of a healthy GPU
  unsigned good_probes_to_recover = 2;  // in a row
  unsigned most_good_probes = 16;       // however often it relapsed
  Nanoseconds relapse_window = 3600 * kSecond;
  // An XID leaves nothing that a probe could see: it counts as gone when probes were good and it
  // has not come again for this long. The same for ECC errors that stopped growing.
  Nanoseconds quiet = 300 * kSecond;
  unsigned heat_margin_c = 2;  // below the limit before heat counts as gone
};

// What one probe found. What the GPU does not tell stays nullopt and is no fault.
struct HealthReading {
  bool answered = true;
  bool off_bus = false;
  std::optional<std::uint64_t> uncorrected;  // ECC errors since the driver was loaded
  std::optional<bool> remap_failed;
  std::optional<bool> remap_pending;
  std::vector<bool> nvlinks_up;                // by link; empty: has none
  std::optional<std::uint64_t> nvlink_errors;  // replay, recovery and CRC counters together
  std::optional<unsigned> temperature_c;
  std::optional<unsigned> slowdown_c;  // where the chip begins to slow itself down
};

struct HealthFault {
  HealthCause cause = HealthCause::kSilent;
  Nanoseconds since = 0;
  Nanoseconds last_seen = 0;
  bool sure = true;      // false: a doubt, which makes suspect and not more
  std::string evidence;  // "XID 79: the GPU has fallen off the bus"
};

struct XidCount {
  std::uint64_t count = 0;
  Nanoseconds last = 0;
};

class GpuHealth {
 public:
  explicit GpuHealth(const HealthOptions& options = {}) : options_(options) {}
  // From the next probe on; what is known stays.
  void set_options(const HealthOptions& options) { options_ = options; }

  void on_probe(const HealthReading& reading, Nanoseconds now);
  void on_xid(unsigned xid, Nanoseconds now);

  HealthState state() const { return state_; }
  Nanoseconds since() const { return since_; }  // of the state
  // Healthy or suspect: the next program may have it.
  bool usable() const { return state_ == HealthState::kHealthy || state_ == HealthState::kSuspect; }
  // What stands against it, oldest first; empty when healthy, and while it recovers.
  const std::vector<HealthFault>& faults() const { return faults_; }
  const std::map<unsigned, XidCount>& xids() const { return xids_; }
  // When the last probe was answered; nullopt: never.
  std::optional<Nanoseconds> answered() const { return answered_; }
  // When to ask next: sooner where a doubt waits to be settled or a recovery to be confirmed.
  Nanoseconds next_probe() const;

 private:
  void note(HealthCause cause, bool sure, std::string evidence, Nanoseconds now);
  void clear(HealthCause cause);
  void read_memory(const HealthReading& reading, Nanoseconds now);
  void read_links(const HealthReading& reading, Nanoseconds now);
  void read_heat(const HealthReading& reading, Nanoseconds now);
  void forget_quiet(Nanoseconds now);
  void settle(bool probed, Nanoseconds now);
  void enter(HealthState state, Nanoseconds now);
  const HealthFault* find(HealthCause cause) const;
  unsigned good_probes_needed() const;

  HealthOptions options_;
  HealthState state_ = HealthState::kHealthy;
  Nanoseconds since_ = 0;
  Nanoseconds last_probe_ = 0;
  std::optional<Nanoseconds> answered_;
  std::vector<HealthFault> faults_;
  std::map<unsigned, XidCount> xids_;
  std::optional<std::uint64_t> uncorrected_;
  std::vector<bool> nvlinks_up_;  // the best seen: a link that never came up is not missed
  std::optional<std::uint64_t> nvlink_errors_;
  unsigned good_in_a_row_ = 0;
  unsigned relapses_ = 0;
  std::optional<Nanoseconds> recovered_;  // when it last came back to healthy
};

std::string_view name_of(HealthState state);
std::string_view name_of(HealthCause cause);

}  // namespace aliquot::inventory
