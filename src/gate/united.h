// UnitedReports: the processes of one lease as the one tenant that the arbiter knows.
//
// What they had the device for is not the sum: while they take turns on it, each has work begun and
// counts the other's slices. Counted is the time in which any of them had, as far as reports tell;
// and all of it while work of theirs was always in flight and more than one of them had the device:
// the switches among them are theirs, and who had it twice tells of one span alone.
// Leaves to others: reading reports, and what is believed of them (bounded()). One thread at a
// time.
#pragma once

#include <utility>
#include <vector>

#include "gate/window.h"

namespace aliquot::gate {

class UnitedReports {
 public:
  // What is remembered of a process from one look to the next.
  struct Process {
    bool known = false;
    Nanoseconds seen_busy = 0;
  };

  // A look: begin, add each process, end. What a process says it has used may begin anew (exec) or
  // jump: only its growth counts, and no more of it than has passed since the last look.
  void begin(Nanoseconds now);
  void add(Process& process, const TenantReport& report);
  TenantReport end();

 private:
  using Span = std::pair<Nanoseconds, Nanoseconds>;

  void merge(const TenantReport& other);

  Nanoseconds now_ = 0;
  Nanoseconds looked_at_ = 0;
  Nanoseconds busy_ns_ = 0;
  bool at_work_ = false;     // at the last look: begun, and in flight
  std::vector<Span> begun_;  // since the last look, with work begun: one span a process
  TenantReport sum_;
};

}  // namespace aliquot::gate
