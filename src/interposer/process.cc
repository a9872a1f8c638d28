#include "interposer/process.h"

#include "interposer/contexts.h"
#include "interposer/devices.h"
#include "interposer/gate.h"
#include "interposer/holdings.h"
#include "interposer/physical_memory.h"
#include "interposer/pools.h"
#include "interposer/real_driver.h"

namespace aliquot::interposer {

void forget_process() {
  forget_load_lock();
  forget_devices();
  forget_holdings();
  forget_contexts();
  forget_gates();
  forget_pools();
  physical::forget();
}

}  // namespace aliquot::interposer
