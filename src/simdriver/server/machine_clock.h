// The time of a simulated machine: the host's, or slower by a fixed factor (`sim up --speed`).
// Both count nanoseconds and agree at the moment the machine began. Everything in the device is
// in machine time; what a process does to a wait or a file stays in the host's. Pure but for the
// host's clock, which is borrowed; any thread.
#pragma once

#include <cstdint>

#include "common/clock.h"

namespace aliquot::simdriver {

class MachineClock final : public Clock {
 public:
  // `time_scale_micro`: machine time per host time in millionths, from 1 to 1,000,000.
  MachineClock(const Clock& host, std::uint32_t time_scale_micro)
      : host_(host), scale_(time_scale_micro), began_(host.now()) {}

  Nanoseconds now() const override { return machine_time(host_.now()); }
  Nanoseconds host_now() const { return host_.now(); }
  Nanoseconds began() const { return began_; }  // in either time

  // Rounded down; never goes back as `host` goes on. What was before the machine is its beginning.
  Nanoseconds machine_time(Nanoseconds host) const {
    return host <= began_ ? began_ : began_ + times(host - began_, scale_, kMicro);
  }
  // The first moment of the host at which the machine's time is at least `machine`.
  Nanoseconds host_time(Nanoseconds machine) const {
    return machine <= began_ ? began_ : began_ + host_span(machine - began_);
  }
  // How long the host waits for `span` of the machine's time; not negative.
  Nanoseconds host_span(Nanoseconds span) const {
    if (span / scale_ >= kLongest / kMicro) return kLongest;
    return times(span, kMicro, scale_) + (span % scale_ * kMicro % scale_ != 0 ? 1 : 0);
  }

 private:
  static constexpr Nanoseconds kMicro = 1'000'000;
  static constexpr Nanoseconds kLongest = INT64_MAX / 4;

  // value * by / over without a product wider than the result.
  static Nanoseconds times(Nanoseconds value, Nanoseconds by, Nanoseconds over) {
    return value / over * by + value % over * by / over;
  }

  const Clock& host_;
  const Nanoseconds scale_;
  const Nanoseconds began_;
};

}  // namespace aliquot::simdriver
