// Every way to launch work, row by row of the table: at a broken gate it is refused before the
// driver hears of it. A row whose plan were only to admit would reach the driver.
#include <gtest/gtest.h>

#include "interposer/guard_plans.h"
#include "interposer/testing/gated_share.h"

namespace aliquot::interposer::testing {
namespace {

// Calls a function with null, 0 and empty for whatever it takes.
template <class... Parameters>
CUresult call_with_nothing(CUresult (*function)(Parameters...)) {
  return function(Parameters{}...);
}

constexpr bool goes_through(Plan plan) { return plan == Plan::kLaunch || plan == Plan::kWork; }

struct Row {
  const char* symbol;
  bool gated;
  CUresult (*call)();
};

const Row kRows[] = {
#define ALIQUOT_ENTRY(symbol, base, since, until, kind, params, args) \
  {#symbol, goes_through(plan_of(#base)), [] { return call_with_nothing(&::symbol); }},
#include "driver_abi/cuda_entry_points.def"
};

// One that has been found broken: no row waits for it again.
void break_gate(GatedShare& share) {
  share.close();
  share.sign_of_life(1);
  GateState& state = *gate_state(0);
  state.broken = true;
  state.broken_word = share.lease.grant.gpu[0].window;
}

TEST(GateRows, EachRowOfWorkIsRefusedAtABrokenGateUnseenByTheDriver) {
  GatedShare share;
  share.begin();
  break_gate(share);
  unsigned rows = 0;
  for (const Row& row : kRows) {
    if (!row.gated) continue;
    ++rows;
    EXPECT_EQ(row.call(), CUDA_ERROR_LAUNCH_FAILED) << row.symbol;
    EXPECT_EQ(share.calls(row.symbol), 0u) << row.symbol;
  }
  EXPECT_EQ(share.refused(), rows);
  EXPECT_GT(rows, 130u);
}

TEST(GateRows, EachRowOfWorkReachesTheDriverOnceThroughAnOpenGate) {
  GatedShare share;
  share.begin();
  share.open_alone();
  for (const Row& row : kRows) {
    if (!row.gated || !has(driver_abi::cuda_row(row.symbol).value())) continue;
    EXPECT_EQ(row.call(), CUDA_SUCCESS) << row.symbol;
    EXPECT_EQ(share.calls(row.symbol), 1u) << row.symbol;
  }
}

// What the issue names, so that a plan that is taken away is missed.
TEST(GateRows, TheNamedWaysToLaunchAreAllThere) {
  for (const std::string_view base :
       {"cuLaunch",          "cuLaunchGrid",      "cuLaunchGridAsync",
        "cuLaunchKernel",    "cuLaunchKernelEx",  "cuLaunchCooperativeKernel",
        "cuGraphLaunch",     "cuLaunchHostFunc",  "cuStreamAddCallback",
        "cuMemcpy",          "cuMemcpyAsync",     "cuMemcpyHtoD",
        "cuMemcpyDtoH",      "cuMemcpyDtoDAsync", "cuMemcpy2D",
        "cuMemcpy3DAsync",   "cuMemcpyPeer",      "cuMemsetD8",
        "cuMemsetD32Async",  "cuMemsetD2D16",     "cuMemPrefetchAsync",
        "cuMemcpyBatchAsync"}) {
    bool found = false;
    for (const Row& row : kRows)
      found |= row.gated && std::string_view(row.symbol).starts_with(base);
    EXPECT_TRUE(found) << base;
  }
  unsigned per_thread = 0;
  for (const Row& row : kRows)
    per_thread += row.gated && (std::string_view(row.symbol).ends_with("_ptsz") ||
                                std::string_view(row.symbol).ends_with("_ptds"));
  EXPECT_GT(per_thread, 50u);
}

CUDA_LAUNCH_PARAMS on(CUstream stream) {
  CUDA_LAUNCH_PARAMS launch{};
  launch.stream = stream;
  return launch;
}

TEST(GateRows, ALaunchOnSeveralGpusPassesTheGateOfEach) {
  GatedShare share(2);
  const CUcontext first = share.begin(0);
  const CUcontext second = share.begin(1);
  {
    const std::scoped_lock lock(share.fake.mutex);
    share.fake.stream_contexts[reinterpret_cast<CUstream>(std::uintptr_t{0x10})] = first;
    share.fake.stream_contexts[reinterpret_cast<CUstream>(std::uintptr_t{0x20})] = second;
  }
  CUDA_LAUNCH_PARAMS launches[] = {on(reinterpret_cast<CUstream>(std::uintptr_t{0x10})),
                                   on(reinterpret_cast<CUstream>(std::uintptr_t{0x20}))};
  share.open_alone(0);
  std::thread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    EXPECT_EQ(share.calls("cuLaunchCooperativeKernelMultiDevice"), 0u);
    share.open_alone(1);
  });
  EXPECT_EQ(cuLaunchCooperativeKernelMultiDevice(launches, 2, 0), CUDA_SUCCESS);
  opener.join();
  EXPECT_EQ(share.calls("cuLaunchCooperativeKernelMultiDevice"), 1u);
  EXPECT_EQ(share.launches(0), 1u);
  EXPECT_EQ(share.launches(1), 1u);
  EXPECT_GE(share.demand(1), 1u);
}

}  // namespace
}  // namespace aliquot::interposer::testing
