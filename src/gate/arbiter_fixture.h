// Tenants that are played by hand, for the tests of the broker's side. Test support only.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "gate/arbiter.h"

namespace aliquot::gate {

inline constexpr Nanoseconds kUs = kMicrosecond;
inline constexpr Nanoseconds kMs = kMillisecond;

struct Broker : ::testing::Test {
  Arbiter arbiter;
  std::vector<TenantReport> reports;
  Nanoseconds now = 1 * kSecond;
  Nanoseconds next = 0;

  std::size_t add(const TenantTerms& terms) {
    const std::size_t tenant = arbiter.add(now, terms);
    reports.resize(arbiter.slots());
    reports[tenant] = {};
    return tenant;
  }
  std::size_t add(double cores) { return add(TenantTerms{.cores_percent = cores}); }
  void step() { next = arbiter.step(now, reports); }
  void step_at(Nanoseconds time) {
    now = time;
    step();
  }
  void wait_at_gate(std::size_t tenant) { reports[tenant].waiting = 1; }
  // Launches `work` of device time that begins at once.
  void launch(std::size_t tenant, Nanoseconds work) {
    TenantReport& report = reports[tenant];
    report.waiting = 0;
    report.in_flight = 1;
    report.last_launch = report.since = now;
    report.busy_since = now;
    report.outstanding_ns = report.head_ns = work;
  }
  void complete(std::size_t tenant) {
    TenantReport& report = reports[tenant];
    report.busy_ns += now - report.busy_since;
    report.busy_since = 0;
    report.in_flight = 0;
    report.outstanding_ns = report.head_ns = 0;
    report.since = now;
  }
  // Of two even tenants the first holds, with so much in flight; the second takes `lead` to begin.
  std::pair<std::size_t, std::size_t> holder_and_other(Nanoseconds work, Nanoseconds lead) {
    const std::size_t holder = add(50);
    const std::size_t other = add(50);
    reports[other].lead_ns = lead;
    wait_at_gate(holder);
    step();
    launch(holder, work);
    return {holder, other};
  }
  bool is_open(std::size_t tenant) const { return arbiter.window(tenant).open; }
};

}  // namespace aliquot::gate
