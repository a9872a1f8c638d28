// Audit: finds work that did not come through the gate, by comparing the driver's utilisation of a
// tenant's processes with the time for which the arbiter let the tenant have the device.
//
// Reports cannot serve here: who ignores the gate writes them. The time allowed is the broker's own
// knowledge: windows open, and for a bounded while the work left in flight when one closed. The
// driver says whole percents of a sample period, some time later; so the audit keeps the allowance
// of the last seconds, and asks for two samples in a row before it calls somebody an offender.
// Pure; one thread at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "common/clock.h"

namespace aliquot::gate {

struct AuditOptions {
  Nanoseconds spacing = 10 * kMillisecond;  // of the allowances kept
  Nanoseconds memory = 3 * kSecond;
  double tolerated_percent = 5;  // above what was allowed, in each of two samples in a row
  double flagrant_percent = 25;  // in a single one
};

// For a machine slowed by `factor` (10: a tenth of the speed).
AuditOptions slowed(AuditOptions options, double factor);

class Audit {
 public:
  explicit Audit(const AuditOptions& options = {}) : options_(options) {}

  // After each step of the arbiter: Arbiter::allowed() of each slot.
  void note(Nanoseconds now, std::span<const Nanoseconds> allowed);

  struct Finding {
    Nanoseconds excess_ns = 0;  // used beyond what was allowed and tolerated: charge it
    bool offender = false;
  };
  // The tenant's processes had the device for `percent` of the `period` that ended at `end`.
  Finding sample(std::size_t tenant, Nanoseconds end, Nanoseconds period, double percent);

  // The slot has a new owner.
  void forget(std::size_t tenant);

 private:
  struct Allowance {
    Nanoseconds time = 0;
    std::vector<Nanoseconds> allowed;
  };
  double allowed_by(std::size_t tenant, Nanoseconds time) const;

  AuditOptions options_;
  std::deque<Allowance> history_;
  std::vector<Nanoseconds> since_;  // by tenant: samples that begin earlier are not judged
  std::vector<std::uint32_t> in_a_row_;
};

}  // namespace aliquot::gate
