// The way into each guarded row: admit the process, then do what the row's plan says.
#include "interposer/devices.h"
#include "interposer/guard_plans.h"
#include "interposer/guards.h"
#include "interposer/inside.h"
#include "interposer/real_driver.h"

namespace aliquot::interposer {
namespace {

template <Plan kPlan>
void after(CUresult result) {
  if constexpr (kPlan == Plan::kLaunch) {
    if (result != CUDA_SUCCESS) return;
    CUdevice device = -1;
    if (real::cuCtxGetDevice(&device) != CUDA_SUCCESS) return;
    if (const unsigned gpu = gpu_of(device); gpu != kForeignGpu) count_launch(gpu);
  }
}

}  // namespace
}  // namespace aliquot::interposer

// entry_stubs.S jumps here. Without a lease, or a driver, the row answers NO_DEVICE. A call from
// inside one of our calls is the driver's own: the outer one has charged.
#define ALIQUOT_WAY_IN_kPass(symbol, base, params, args)
#define ALIQUOT_WAY_IN_kDeny(symbol, base, params, args)
#define ALIQUOT_WAY_IN_kGuard(symbol, base, params, args)                                  \
  extern "C" [[gnu::visibility("hidden")]] CUresult aliquot_guard_##symbol params {        \
    using namespace aliquot::interposer;                                                   \
    constexpr Plan kPlan = plan_of(#base);                                                 \
    static_assert(kPlan != Plan::kNone, "guard_plans.def says nothing about " #base);      \
    if (Inside::now()) return real::symbol args;                                           \
    const Inside inside;                                                                   \
    if constexpr (kPlan != Plan::kFirst)                                                   \
      if (!load(Library::kCuda)) return CUDA_ERROR_NO_DEVICE;                              \
    if constexpr (kPlan == Plan::kFirst || kPlan == Plan::kOwn) return guard::symbol args; \
    const CUresult result = real::symbol args;                                             \
    after<kPlan>(result);                                                                  \
    return result;                                                                         \
  }
#define ALIQUOT_ENTRY(symbol, base, since, until, kind, params, args) \
  ALIQUOT_WAY_IN_##kind(symbol, base, params, args)
#include "driver_abi/cuda_entry_points.def"
