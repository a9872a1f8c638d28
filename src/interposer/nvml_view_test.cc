#include "interposer/nvml_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include "interposer/testing/nvml_share.h"

namespace aliquot::interposer {
namespace {

using ::testing::HasSubstr;
using testing::NvmlShare;

TEST(NvmlInit, StartsTheLibraryAndCountsLikeIt) {
  NvmlShare share;
  EXPECT_EQ(nvmlInit(), NVML_SUCCESS);
  EXPECT_EQ(nvmlInit_v2(), NVML_SUCCESS);
  EXPECT_EQ(nvmlInitWithFlags(0), NVML_SUCCESS);
  EXPECT_EQ(share.fake.calls["nvmlInit"], 1u);
  EXPECT_EQ(share.fake.calls["nvmlInit_v2"], 1u);
  EXPECT_EQ(share.fake.calls["nvmlInitWithFlags"], 1u);
  EXPECT_EQ(share.fake.users, 3u);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(nvmlShutdown(), NVML_SUCCESS);
  EXPECT_EQ(share.fake.users, 0u);
  EXPECT_EQ(nvmlShutdown(), NVML_ERROR_UNINITIALIZED);
}

TEST(NvmlInit, TheLibrarysFailureIsReturnedAndNothingIsStarted) {
  NvmlShare share;
  share.fake.fail["nvmlInit_v2"] = NVML_ERROR_DRIVER_NOT_LOADED;
  EXPECT_EQ(nvmlInit_v2(), NVML_ERROR_DRIVER_NOT_LOADED);
  unsigned count = 7;
  EXPECT_EQ(nvmlDeviceGetCount_v2(&count), NVML_ERROR_UNINITIALIZED);
  EXPECT_EQ(count, 7u);
}

TEST(NvmlInit, AFailedShutdownLeavesItStarted) {
  NvmlShare share;
  ASSERT_NE(share.begin(), nullptr);
  share.fake.fail["nvmlShutdown"] = NVML_ERROR_UNKNOWN;
  EXPECT_EQ(nvmlShutdown(), NVML_ERROR_UNKNOWN);
  unsigned count = 0;
  EXPECT_EQ(nvmlDeviceGetCount_v2(&count), NVML_SUCCESS);
}

TEST(NvmlInit, ErrorTextsAreTheLibrarysOnceItIsThere) {
  NvmlShare share;
  EXPECT_STREQ(nvmlErrorString(NVML_ERROR_NOT_FOUND), "NVML_ERROR_NOT_FOUND");
  EXPECT_STREQ(nvmlErrorString(12345), "NVML_ERROR_UNKNOWN");
  ASSERT_NE(share.begin(), nullptr);
  EXPECT_STREQ(nvmlErrorString(NVML_ERROR_NOT_FOUND), "the fake's own words");
}

// Without a lease: NVML starts, there is no GPU, and one line says why.
struct NvmlWithoutLease : ::testing::Test {
  NvmlWithoutLease() {
    unsetenv("ALIQUOT_LEASE");
    tenant().leave();
    tenant().ask_again_if_refused();
  }
  ~NvmlWithoutLease() override {
    while (nvmlShutdown() == NVML_SUCCESS) continue;
    unsetenv("ALIQUOT_QUIET");
    tenant().leave();
  }
};

TEST_F(NvmlWithoutLease, ItStartsAndListsNoGpu) {
  ASSERT_EQ(nvmlInit_v2(), NVML_SUCCESS);
  unsigned count = 7;
  EXPECT_EQ(nvmlDeviceGetCount_v2(&count), NVML_SUCCESS);
  EXPECT_EQ(count, 0u);
  nvmlDevice_t device = nullptr;
  EXPECT_EQ(nvmlDeviceGetHandleByIndex_v2(0, &device), NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(nvmlDeviceGetHandleByUUID("GPU-1", &device), NVML_ERROR_NOT_FOUND);
  EXPECT_EQ(nvmlDeviceGetHandleByPciBusId_v2("0:1:0.0", &device), NVML_ERROR_NOT_FOUND);
  char name[64];
  EXPECT_EQ(nvmlSystemGetProcessName(1, name, sizeof name), NVML_ERROR_NOT_FOUND);
  count = 5;
  EXPECT_EQ(nvmlSystemGetTopologyGpuSet(0, &count, &device), NVML_SUCCESS);
  EXPECT_EQ(count, 0u);
  EXPECT_EQ(device, nullptr);
  EXPECT_EQ(nvmlShutdown(), NVML_SUCCESS);
  EXPECT_EQ(nvmlShutdown(), NVML_ERROR_UNINITIALIZED);
}

TEST_F(NvmlWithoutLease, TheReasonIsSaidOnceOnStderr) {
  ::testing::internal::CaptureStderr();
  ASSERT_EQ(nvmlInit_v2(), NVML_SUCCESS);
  ASSERT_EQ(nvmlInit_v2(), NVML_SUCCESS);
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, HasSubstr("no GPU"));
  EXPECT_THAT(said, HasSubstr("aliquot run"));
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
}

TEST_F(NvmlWithoutLease, QuietSaysNothing) {
  setenv("ALIQUOT_QUIET", "1", 1);
  ::testing::internal::CaptureStderr();
  ASSERT_EQ(nvmlInit_v2(), NVML_SUCCESS);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST(NvmlDevices, OnlyTheLeasedAreCountedInTheLeasesOrder) {
  NvmlShare share;
  ASSERT_NE(share.begin(), nullptr);
  unsigned count = 0;
  EXPECT_EQ(nvmlDeviceGetCount(&count), NVML_SUCCESS);
  EXPECT_EQ(count, 2u);
  count = 0;
  EXPECT_EQ(nvmlDeviceGetCount_v2(&count), NVML_SUCCESS);
  EXPECT_EQ(count, 2u);
  EXPECT_EQ(nvmlDeviceGetCount_v2(nullptr), NVML_ERROR_INVALID_ARGUMENT);
  for (unsigned i = 0; i < 2; ++i) {
    nvmlDevice_t device = nullptr;
    ASSERT_EQ(nvmlDeviceGetHandleByIndex_v2(i, &device), NVML_SUCCESS);
    char uuid[96] = "";
    ASSERT_EQ(nvmlDeviceGetUUID(device, uuid, sizeof uuid), NVML_SUCCESS);
    EXPECT_EQ(uuid, share.fake.gpus[NvmlShare::kLeased[i]].uuid);
    nvmlDevice_t old = nullptr;
    EXPECT_EQ(nvmlDeviceGetHandleByIndex(i, &old), NVML_SUCCESS);
    EXPECT_EQ(old, device);
    unsigned index = 9;
    EXPECT_EQ(nvmlDeviceGetIndex(device, &index), NVML_SUCCESS);
    EXPECT_EQ(index, i);
  }
  nvmlDevice_t third = nullptr;
  EXPECT_EQ(nvmlDeviceGetHandleByIndex_v2(2, &third), NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(nvmlDeviceGetHandleByIndex(2, &third), NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(third, nullptr);
}

TEST(NvmlDevices, AForeignGpuIsFoundByNoName) {
  NvmlShare share;
  nvmlDevice_t mine = share.begin();
  ASSERT_NE(mine, nullptr);
  const auto& own = share.fake.gpus[1];
  const auto& foreign = share.fake.gpus[2];
  const auto as_uuid = [](const std::string& text) {
    nvmlUUID_t uuid{};
    uuid.version = driver_abi::nvml_struct_version<nvmlUUID_t>(1);
    uuid.type = NVML_UUID_TYPE_ASCII;
    text.copy(uuid.text, sizeof uuid.text - 1);
    return uuid;
  };
  const nvmlUUID_t own_uuid = as_uuid(own.uuid), foreign_uuid = as_uuid(foreign.uuid);
  const auto check = [&](auto look_up, auto own_key, auto foreign_key) {
    nvmlDevice_t device = nullptr;
    EXPECT_EQ(look_up(own_key, &device), NVML_SUCCESS);
    EXPECT_EQ(device, mine);
    device = nullptr;
    EXPECT_EQ(look_up(foreign_key, &device), NVML_ERROR_NOT_FOUND);
    EXPECT_EQ(device, nullptr);
    EXPECT_EQ(look_up(own_key, nullptr), NVML_ERROR_INVALID_ARGUMENT);
  };
  check(&nvmlDeviceGetHandleByUUID, own.uuid.c_str(), foreign.uuid.c_str());
  check(&nvmlDeviceGetHandleByUUIDV, &own_uuid, &foreign_uuid);
  check(&nvmlDeviceGetHandleBySerial, own.serial.c_str(), foreign.serial.c_str());
  check(&nvmlDeviceGetHandleByPciBusId, own.bus_id.c_str(), foreign.bus_id.c_str());
  check(&nvmlDeviceGetHandleByPciBusId_v2, own.bus_id.c_str(), foreign.bus_id.c_str());
}

TEST(NvmlDevices, TheLibrarysLookupErrorIsReturned) {
  NvmlShare share;
  ASSERT_NE(share.begin(), nullptr);
  nvmlDevice_t device = nullptr;
  share.fake.fail["nvmlDeviceGetHandleBySerial"] = NVML_ERROR_GPU_IS_LOST;
  EXPECT_EQ(nvmlDeviceGetHandleBySerial("serial-1", &device), NVML_ERROR_GPU_IS_LOST);
}

TEST(NvmlDevices, ALeasedGpuThatFellOffTheBusIsLostNotGone) {
  NvmlShare share;
  share.fake.gpus[3].uuid = "GPU-else";
  ASSERT_NE(share.begin(), nullptr);
  unsigned count = 0;
  EXPECT_EQ(nvmlDeviceGetCount_v2(&count), NVML_SUCCESS);
  EXPECT_EQ(count, 2u);
  nvmlDevice_t device = nullptr;
  EXPECT_EQ(nvmlDeviceGetHandleByIndex_v2(1, &device), NVML_ERROR_GPU_IS_LOST);
}

TEST(NvmlDevices, MigDevicesAreThereOnlyIfLeased) {
  NvmlShare share;
  nvmlDevice_t first = share.begin();
  ASSERT_NE(first, nullptr);
  // In the fake, the GPU so many places on plays the part.
  nvmlDevice_t found = nullptr;
  EXPECT_EQ(nvmlDeviceGetMigDeviceHandleByIndex(first, 2, &found), NVML_SUCCESS);
  found = nullptr;
  EXPECT_EQ(nvmlDeviceGetMigDeviceHandleByIndex(first, 1, &found), NVML_ERROR_NOT_FOUND);
  EXPECT_EQ(nvmlDeviceGetDeviceHandleFromMigDeviceHandle(first, &found), NVML_ERROR_NOT_FOUND);
  EXPECT_EQ(found, nullptr);
  unsigned count = 0;
  nvmlGpuInstance_t instance = nullptr;
  EXPECT_EQ(nvmlDeviceGetGpuInstances(first, 0, &instance, &count), NVML_ERROR_NO_PERMISSION);
  EXPECT_EQ(nvmlDeviceGetGpuInstanceById(first, 0, &instance), NVML_ERROR_NO_PERMISSION);
}

TEST(NvmlSystem, ExcludedGpusAndUnitsAreNobodysToSee) {
  NvmlShare share;
  ASSERT_NE(share.begin(), nullptr);
  for (auto* count_of : {&nvmlGetExcludedDeviceCount, &nvmlUnitGetCount}) {
    unsigned count = 7;
    EXPECT_EQ(count_of(&count), NVML_SUCCESS);
    EXPECT_EQ(count, 0u);
    EXPECT_EQ(count_of(nullptr), NVML_ERROR_INVALID_ARGUMENT);
  }
  unsigned cards = 7;
  EXPECT_EQ(nvmlSystemGetHicVersion(&cards, nullptr), NVML_SUCCESS);
  EXPECT_EQ(cards, 0u);
  nvmlExcludedDeviceInfo_t info{};
  nvmlUnit_t unit = nullptr;
  nvmlDevice_t device = nullptr;
  EXPECT_EQ(nvmlGetExcludedDeviceInfoByIndex(0, &info), NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(nvmlUnitGetHandleByIndex(0, &unit), NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(nvmlUnitGetDevices(unit, &cards, &device), NVML_ERROR_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace aliquot::interposer
