// The way into each guarded row: admit the process, then do what the row's plan says.
#include "interposer/captures.h"
#include "interposer/devices.h"
#include "interposer/gate.h"
#include "interposer/guard_plans.h"
#include "interposer/guards.h"
#include "interposer/inside.h"
#include "interposer/pools.h"
#include "interposer/real_driver.h"

namespace aliquot::interposer {
namespace {

// What a row's guard does once the process is admitted. kCall: the driver's function.
template <Plan kPlan, driver_abi::Cuda kRow, bool kPerThread, auto kCall, class... Arguments>
CUresult answer(Arguments... arguments) {
  if constexpr (kPlan == Plan::kLaunch || kPlan == Plan::kWork) {
    Work work = work_of(kRow, arguments...);
    work.stream = own_handle(work.stream, kPerThread);
    const unsigned gpu = gpu_of_thread();
    const CUresult result = pass(gpu, work, [&] { return kCall(arguments...); });
    if (kPlan == Plan::kLaunch && result == CUDA_SUCCESS && gpu < wire::kMaxGpus) count_launch(gpu);
    return result;
  } else {
    const CUresult result = kCall(arguments...);
    if constexpr (kPlan == Plan::kWait)
      if (result == CUDA_SUCCESS) work_has_ended();
    if constexpr (kPlan == Plan::kBegin) capture_began(result);
    if constexpr (kPlan == Plan::kEnd) capture_ended(result);
    return result;
  }
}

// Admits the process, then the row. Apart from the way of a launch that goes at once, which is then
// short and keeps its arguments in registers: 10 ns of 25.
template <Plan kPlan, driver_abi::Cuda kRow, bool kPerThread, auto kCall, class... Arguments>
[[gnu::noinline, gnu::cold]] CUresult admitted(Arguments... arguments) {
  const Inside inside;
  if (!load(Library::kCuda)) return CUDA_ERROR_NO_DEVICE;
  return answer<kPlan, kRow, kPerThread, kCall>(arguments...);
}

// The way of most launches: one GPU, its window open and nobody else there.
template <Plan kPlan, driver_abi::Cuda kRow, bool kPerThread, auto kCall, class... Arguments>
[[gnu::always_inline]] inline CUresult launch(Arguments... arguments) {
  if (is_loaded(Library::kCuda) && tenant().gpu_count() == 1 &&
      passes_at_once(0, work_of(kRow, arguments...))) [[likely]] {
    const Inside inside;
    const CUresult result = kCall(arguments...);
    if (result == CUDA_SUCCESS) count_launch(0);
    return result;
  }
  return admitted<kPlan, kRow, kPerThread, kCall>(arguments...);
}

}  // namespace
}  // namespace aliquot::interposer

// entry_stubs.S jumps here. Without a lease, or a driver, the row answers NO_DEVICE. A call from
// inside one of our calls is the driver's own: the outer one has charged.
#define ALIQUOT_WAY_IN_kPass(symbol, base, params, args)
#define ALIQUOT_WAY_IN_kDeny(symbol, base, params, args)
#define ALIQUOT_WAY_IN_kGuard(symbol, base, params, args)                             \
  extern "C" [[gnu::visibility("hidden")]] CUresult aliquot_guard_##symbol params {   \
    using namespace aliquot::interposer;                                              \
    constexpr Plan kPlan = plan_of(#base);                                            \
    static_assert(kPlan != Plan::kNone, "guard_plans.def says nothing about " #base); \
    if (Inside::now()) return real::symbol args;                                      \
    if constexpr (kPlan == Plan::kFirst || kPlan == Plan::kOwn) {                     \
      const Inside inside;                                                            \
      if constexpr (kPlan == Plan::kOwn)                                              \
        if (!load(Library::kCuda)) return CUDA_ERROR_NO_DEVICE;                       \
      return guard::symbol args;                                                      \
    } else {                                                                          \
      constexpr auto kRow = aliquot::driver_abi::Cuda::symbol;                        \
      constexpr bool kPerThread = is_per_thread(#symbol);                             \
      if constexpr (kPlan == Plan::kLaunch)                                           \
        return launch<kPlan, kRow, kPerThread, &real::symbol> args;                   \
      else                                                                            \
        return admitted<kPlan, kRow, kPerThread, &real::symbol> args;                 \
    }                                                                                 \
  }
#define ALIQUOT_ENTRY(symbol, base, since, until, kind, params, args) \
  ALIQUOT_WAY_IN_##kind(symbol, base, params, args)
#include "driver_abi/cuda_entry_points.def"
