// Promises: a waiter of a context that has its GPU to itself is told when its command will have
// ended, and sleeps to that moment by itself; the server need not wake for it again. What could
// change the moment takes the promise back: another context on the GPU, or a further command of
// the same one. The server's loop only.
#pragma once

#include "simdriver/server/machine_clock.h"
#include "simdriver/server/machine_state.h"

namespace aliquot::simdriver {

// Promises to those waiters of `context`, alone on `gpu`, whose command has an end that is certain.
void make_promises(ContextEntry& context, const Timeline& gpu, const MachineClock& clock);

void take_back_promises(ContextEntry& context);

// Whether waiter `index` of the context has been told when.
bool is_promised(const ContextEntry& context, std::size_t index);

}  // namespace aliquot::simdriver
