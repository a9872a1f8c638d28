// What a call costs the thread that makes it, by the model of the machine (its `timing`): a body,
// or the server's answer to a request, adds to what the call owes; the entry (entries.cc) pays
// when the body has returned and the lock is free, by waiting for what the call itself has not
// taken already. Machine time, so longer in slow motion. The calling thread's own.
#pragma once

#include <cstdint>

namespace aliquot::simdriver {

struct CallCost {
  std::int64_t owed_ns = 0;   // of the machine's time
  std::int64_t since_ns = 0;  // of the host's time: when the first of it was owed
};
inline thread_local constinit CallCost call_cost;

void start_call_cost();
inline void owe(std::uint64_t machine_ns) {
  if (machine_ns == 0) return;
  if (call_cost.owed_ns == 0) start_call_cost();
  call_cost.owed_ns += static_cast<std::int64_t>(machine_ns);
}

void pay_call_cost();
inline void pay() {
  if (call_cost.owed_ns != 0) pay_call_cost();
}

}  // namespace aliquot::simdriver
