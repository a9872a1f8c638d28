// Contexts: what one costs is charged before the driver makes it.
//
// A context's bytes are the model's overhead from the grant: the driver does not say them. The
// primary context of a GPU is shared and counted by the driver; here its charge follows whether the
// driver says it is active, so that retains past us do no harm. Any thread; no lock is held over a
// driver call.
#pragma once

#include <cstdint>

#include "driver_abi/cuda_types.h"
#include "interposer/account.h"
#include "interposer/devices.h"
#include "interposer/holdings.h"

namespace aliquot::interposer {

std::uint64_t context_overhead(unsigned gpu);

// Why gpu_of said kForeignGpu: the driver's own error, else INVALID_DEVICE.
CUresult why_foreign(CUdevice device);

// Around a driver call that may bring the primary context of `gpu` to life. `charge` false: the
// share has no room for it. `settle` after a call that may have ended it, or that failed.
class PrimaryContext {
 public:
  explicit PrimaryContext(unsigned gpu);
  ~PrimaryContext();
  PrimaryContext(const PrimaryContext&) = delete;
  PrimaryContext& operator=(const PrimaryContext&) = delete;

  bool granted() const { return granted_; }
  // The driver's handle for it, to know later what went with it.
  void is(CUcontext context);
  // That handle; 0: not known.
  static std::uint64_t handle(unsigned gpu);

  // Gives the charge back, and that of all that was made in it, if it is no longer active.
  static void settle(unsigned gpu);

 private:
  unsigned gpu_;
  bool granted_;
};

void forget_contexts();

}  // namespace aliquot::interposer
