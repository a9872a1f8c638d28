// The checks that all guarded NVML rows share: initialised, leased devices only, a name that the
// library has; and that rows without a body of their own reach the library.
#include <gtest/gtest.h>

#include <type_traits>

#include "interposer/nvml_plans.h"
#include "interposer/testing/nvml_share.h"

namespace aliquot::interposer {
namespace {

using driver_abi::Nvml;
using testing::NvmlShare;

// Calls a row's exported function with `device` in every device's place and zeros elsewhere.
template <class Argument>
Argument argument([[maybe_unused]] nvmlDevice_t device) {
  if constexpr (std::is_same_v<Argument, nvmlDevice_t>)
    return device;
  else
    return Argument{};
}
template <class... Arguments>
nvmlReturn_t call(nvmlReturn_t (*function)(Arguments...), [[maybe_unused]] nvmlDevice_t device) {
  return function(argument<Arguments>(device)...);
}
template <class... Arguments>
nvmlReturn_t call(const char* (*)(Arguments...), nvmlDevice_t) {
  return NVML_SUCCESS;
}
template <class Result, class... Arguments>
constexpr bool takes_device(Result (*)(Arguments...)) {
  return (std::is_same_v<Arguments, nvmlDevice_t> || ...);
}

struct GuardedRow {
  const char* name;
  NvmlPlan plan;
  bool takes_device;
  nvmlReturn_t (*call)(nvmlDevice_t);
};

#define ROW_kPass(symbol, base)
#define ROW_kDeny(symbol, base)
#define ROW_kGuard(symbol, base)                                                                   \
  GuardedRow{#symbol, nvml_plan_of(#base), takes_device(driver_abi::NvmlFunction<Nvml::symbol>{}), \
             [](nvmlDevice_t device) { return call(&::symbol, device); }},
const GuardedRow kGuarded[] = {
#define ALIQUOT_ENTRY(symbol, base, since, until, kind, params, args) ROW_##kind(symbol, base)
#include "driver_abi/nvml_entry_points.def"
};

constexpr const char* kMissing = "nvmlDeviceGetMemoryLimits_v1";  // fake_nvml.map

TEST(NvmlGuards, NothingIsAnsweredBeforeNvmlInit) {
  NvmlShare share;
  for (const GuardedRow& row : kGuarded) {
    if (row.plan == NvmlPlan::kAlways) continue;
    EXPECT_EQ(row.call(share.foreign(1)), NVML_ERROR_UNINITIALIZED) << row.name;
  }
  EXPECT_TRUE(share.fake.calls.empty());
}

TEST(NvmlGuards, ADeviceOfAnotherLeaseIsRefusedByEveryCall) {
  NvmlShare share;
  ASSERT_NE(share.begin(), nullptr);
  share.fake.calls.clear();
  for (const GuardedRow& row : kGuarded) {
    if (!row.takes_device) continue;
    EXPECT_EQ(row.call(share.foreign(0)), NVML_ERROR_INVALID_ARGUMENT) << row.name;
    EXPECT_EQ(row.call(nullptr), NVML_ERROR_INVALID_ARGUMENT) << row.name;
  }
  EXPECT_TRUE(share.fake.calls.empty());
}

TEST(NvmlGuards, ACheckedCallReachesTheLibraryOnce) {
  NvmlShare share;
  nvmlDevice_t device = share.begin();
  ASSERT_NE(device, nullptr);
  for (const GuardedRow& row : kGuarded) {
    if (row.plan != NvmlPlan::kChecked || std::string(row.name) == kMissing) continue;
    share.fake.calls.clear();
    if (std::string(row.name) == "nvmlDeviceGetUUID") continue;  // writes: has its own test
    EXPECT_EQ(row.call(device), NVML_SUCCESS) << row.name;
    EXPECT_EQ(share.fake.calls[row.name], 1u) << row.name;
    share.fake.fail[row.name] = NVML_ERROR_GPU_IS_LOST;
    EXPECT_EQ(row.call(device), NVML_ERROR_GPU_IS_LOST) << row.name;
  }
}

TEST(NvmlGuards, ANameThatTheLibraryLacksIsNotFound) {
  NvmlShare share;
  nvmlDevice_t device = share.begin();
  ASSERT_NE(device, nullptr);
  nvmlGetMemoryLimits_v1_t* none = nullptr;
  EXPECT_EQ(nvmlDeviceGetMemoryLimits_v1(device, none), NVML_ERROR_FUNCTION_NOT_FOUND);
}

TEST(NvmlGuards, WhatWouldChangeTheGpuForOthersIsDenied) {
  NvmlShare share;
  nvmlDevice_t device = share.begin();
  ASSERT_NE(device, nullptr);
  share.fake.calls.clear();
  EXPECT_EQ(nvmlDeviceSetPowerManagementLimit(device, 100000), NVML_ERROR_NO_PERMISSION);
  EXPECT_EQ(nvmlDeviceSetComputeMode(device, NVML_COMPUTEMODE_PROHIBITED),
            NVML_ERROR_NO_PERMISSION);
  EXPECT_EQ(nvmlDeviceSetMigMode(device, 1, nullptr), NVML_ERROR_NO_PERMISSION);
  EXPECT_TRUE(share.fake.calls.empty());
}

TEST(NvmlGuards, UnguardedCallsGoStraightThrough) {
  NvmlShare share;
  nvmlDevice_t device = share.begin();
  ASSERT_NE(device, nullptr);
  unsigned milliwatts = 0;
  EXPECT_EQ(nvmlDeviceGetPowerUsage(device, &milliwatts), NVML_SUCCESS);
  EXPECT_EQ(share.fake.calls["nvmlDeviceGetPowerUsage"], 1u);
}

}  // namespace
}  // namespace aliquot::interposer
