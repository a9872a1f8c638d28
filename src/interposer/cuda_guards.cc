// The way into each guarded row: admit the process, then do what the row's plan says.
#include "interposer/captures.h"
#include "interposer/devices.h"
#include "interposer/gate.h"
#include "interposer/guard_plans.h"
#include "interposer/guards.h"
#include "interposer/inside.h"
#include "interposer/real_driver.h"

namespace aliquot::interposer {
namespace {

// Through the gate, or straight to the driver.
template <Plan kPlan, driver_abi::Cuda kRow, bool kPerThread, class Call, class... Arguments>
CUresult answer(Call call, Arguments... arguments) {
  if constexpr (kPlan == Plan::kLaunch || kPlan == Plan::kWork) {
    Work work = work_of(kRow, arguments...);
    work.stream = own_handle(work.stream, kPerThread);
    const unsigned gpu = gpu_of_thread();
    const CUresult result = pass(gpu, work, call);
    if (kPlan == Plan::kLaunch && result == CUDA_SUCCESS && gpu < wire::kMaxGpus) count_launch(gpu);
    return result;
  } else {
    const CUresult result = call();
    if constexpr (kPlan == Plan::kBegin) capture_began(result);
    if constexpr (kPlan == Plan::kEnd) capture_ended(result);
    return result;
  }
}

}  // namespace
}  // namespace aliquot::interposer

// entry_stubs.S jumps here. Without a lease, or a driver, the row answers NO_DEVICE. A call from
// inside one of our calls is the driver's own: the outer one has charged.
#define ALIQUOT_AND(...) __VA_OPT__(, ) __VA_ARGS__
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
    return answer<kPlan, aliquot::driver_abi::Cuda::symbol, is_per_thread(#symbol)>(       \
        [&] { return real::symbol args; } ALIQUOT_AND args);                               \
  }
#define ALIQUOT_ENTRY(symbol, base, since, until, kind, params, args) \
  ALIQUOT_WAY_IN_##kind(symbol, base, params, args)
#include "driver_abi/cuda_entry_points.def"
