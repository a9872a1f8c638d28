// Every row of the table as a weak function that counts and succeeds; fake_driver.cc has the ones
// with a meaning.
#include "interposer/testing/fake_driver_state.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"
#define ALIQUOT_ENTRY(symbol, base, since, until, kind, params, args)           \
  extern "C" [[gnu::visibility("default"), gnu::weak]] CUresult symbol params { \
    const std::scoped_lock lock(aliquot::interposer::testing::books().mutex);   \
    return aliquot::interposer::testing::books().enter(#symbol);                \
  }
#include "driver_abi/cuda_entry_points.def"

namespace aliquot::interposer::testing {

void* exported(driver_abi::Cuda id) {
  static void* const kFunctions[] = {
#define ALIQUOT_ENTRY(symbol, base, since, until, kind, params, args) \
  reinterpret_cast<void*>(&::symbol),
#include "driver_abi/cuda_entry_points.def"
  };
  return kFunctions[driver_abi::index_of(id)];
}

}  // namespace aliquot::interposer::testing
