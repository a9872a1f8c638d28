// SIGKILL after every single machine instruction of the real protocol code, by ptrace: a tenant in
// reserve, count and release, and for each state it can leave behind the broker in bump and
// reclaim. Test code; built with optimisation, so that what is stepped is what ships.
#pragma once

#include <string>

namespace aliquot::wire {

struct StepReport {
  unsigned tenant_instructions = 0;  // of the sequence
  unsigned broker_instructions = 0;
  unsigned runs = 0;
  unsigned unsettled = 0;  // tenants that died with a head newer than their mirror
  unsigned outcomes = 0;   // a bit for each amount that a dead tenant held: 0 500 300 70300
  unsigned violations = 0;
  std::string first_violation;
};

// Every `stride`-th instruction.
StepReport kill_everywhere(unsigned stride);
// The same on code with a planted fault: writers do not settle their predecessor's head.
StepReport kill_everywhere_without_help(unsigned stride);
// The broker subtracts what the mirror says although the head is newer.
StepReport kill_everywhere_reclaiming_unsettled(unsigned stride);

}  // namespace aliquot::wire
