#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "interposer/testing/nvml_share.h"

namespace aliquot::interposer {
namespace {

using ::testing::ElementsAre;
using testing::NvmlShare;
constexpr std::uint64_t kMiB = NvmlShare::kMiB;
constexpr unsigned kStranger = 4242;  // of another tenant: the driver alone knows it

// Two processes of the share, one of another tenant on the same GPU.
class NvmlProcesses : public ::testing::Test {
 protected:
  NvmlProcesses() : device(share.begin()) {
    share.process(2, 70, 1070, 64 * kMiB);
    share.process(9, 71, 1071, 32 * kMiB);
    share.fake.processes.push_back({1, kStranger, 999 * kMiB, 90});
    share.fake.calls.clear();
  }
  NvmlShare share;
  nvmlDevice_t device;
};

template <class Info>
void expect_own_processes(nvmlReturn_t (*list)(nvmlDevice_t, unsigned*, Info*),
                          nvmlDevice_t device) {
  unsigned count = 0;
  EXPECT_EQ(list(device, &count, nullptr), NVML_ERROR_INSUFFICIENT_SIZE);
  ASSERT_EQ(count, 2u);
  Info infos[3] = {};
  infos[2].pid = 12345;
  count = 3;
  ASSERT_EQ(list(device, &count, infos), NVML_SUCCESS);
  ASSERT_EQ(count, 2u);
  EXPECT_EQ(infos[0].pid, 70u);
  EXPECT_EQ(infos[0].used_bytes, 64 * kMiB);
  EXPECT_EQ(infos[1].pid, 71u);
  EXPECT_EQ(infos[1].used_bytes, 32 * kMiB);
  EXPECT_EQ(infos[2].pid, 12345u);
  count = 1;
  infos[1].pid = 12345;
  EXPECT_EQ(list(device, &count, infos), NVML_ERROR_INSUFFICIENT_SIZE);
  EXPECT_EQ(count, 2u);
  EXPECT_EQ(infos[1].pid, 12345u);
  EXPECT_EQ(list(device, nullptr, infos), NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(list(device, &count, nullptr), NVML_ERROR_INVALID_ARGUMENT);
}

TEST_F(NvmlProcesses, TheOldSixteenByteListShowsTheSharesOwn) {
  static_assert(sizeof(nvmlProcessInfo_v1_t) == 16);
  expect_own_processes(&nvmlDeviceGetComputeRunningProcesses, device);
}
TEST_F(NvmlProcesses, TheSecondListShowsTheSharesOwn) {
  expect_own_processes(&nvmlDeviceGetComputeRunningProcesses_v2, device);
}
TEST_F(NvmlProcesses, TheThirdListShowsTheSharesOwn) {
  expect_own_processes(&nvmlDeviceGetComputeRunningProcesses_v3, device);
  nvmlProcessInfo_t infos[2];
  unsigned count = 2;
  ASSERT_EQ(nvmlDeviceGetComputeRunningProcesses_v3(device, &count, infos), NVML_SUCCESS);
  EXPECT_EQ(infos[0].gpu_instance, 0xffffffffu);
  EXPECT_EQ(infos[0].compute_instance, 0xffffffffu);
}

template <class Info>
void expect_nobody(nvmlReturn_t (*list)(nvmlDevice_t, unsigned*, Info*), nvmlDevice_t device) {
  Info infos[4];
  unsigned count = 4;
  EXPECT_EQ(list(device, &count, infos), NVML_SUCCESS);
  EXPECT_EQ(count, 0u);
  EXPECT_EQ(list(device, nullptr, infos), NVML_ERROR_INVALID_ARGUMENT);
}

TEST_F(NvmlProcesses, ThereAreNoGraphicsOrMpsProcesses) {
  expect_nobody(&nvmlDeviceGetGraphicsRunningProcesses, device);
  expect_nobody(&nvmlDeviceGetGraphicsRunningProcesses_v2, device);
  expect_nobody(&nvmlDeviceGetGraphicsRunningProcesses_v3, device);
  expect_nobody(&nvmlDeviceGetMPSComputeRunningProcesses, device);
  expect_nobody(&nvmlDeviceGetMPSComputeRunningProcesses_v2, device);
  expect_nobody(&nvmlDeviceGetMPSComputeRunningProcesses_v3, device);
}

TEST_F(NvmlProcesses, TheDetailListShowsTheSharesOwn) {
  nvmlProcessDetail_v1_t details[4] = {};
  nvmlProcessDetailList_t list{driver_abi::nvml_struct_version<nvmlProcessDetailList_t>(1),
                               NVML_PROCESS_MODE_COMPUTE, 4, details};
  ASSERT_EQ(nvmlDeviceGetRunningProcessDetailList(device, &list), NVML_SUCCESS);
  ASSERT_EQ(list.count, 2u);
  EXPECT_EQ(details[1].pid, 71u);
  EXPECT_EQ(details[1].used_bytes, 32 * kMiB);
  list.mode = NVML_PROCESS_MODE_GRAPHICS;
  ASSERT_EQ(nvmlDeviceGetRunningProcessDetailList(device, &list), NVML_SUCCESS);
  EXPECT_EQ(list.count, 0u);
  list.mode = 17;
  EXPECT_EQ(nvmlDeviceGetRunningProcessDetailList(device, &list), NVML_ERROR_INVALID_ARGUMENT);
  list.version = 3;
  EXPECT_EQ(nvmlDeviceGetRunningProcessDetailList(device, &list),
            NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
  EXPECT_EQ(nvmlDeviceGetRunningProcessDetailList(device, nullptr), NVML_ERROR_INVALID_ARGUMENT);
}

TEST_F(NvmlProcesses, WhoHoldsNothingOnThisGpuIsNotListed) {
  share.process(11, 72, 1072, 0);
  share.process(12, 73, 1073, 8 * kMiB, 1);
  nvmlProcessInfo_t infos[8];
  unsigned count = 8;
  ASSERT_EQ(nvmlDeviceGetComputeRunningProcesses_v3(device, &count, infos), NVML_SUCCESS);
  EXPECT_EQ(count, 2u);
}

TEST_F(NvmlProcesses, AProcessOfAnotherPidNamespaceHasNoNumberHere) {
  share.process(11, 1, 1072, 8 * kMiB, 0, own_pid_namespace() + 1);
  nvmlProcessInfo_t infos[8];
  unsigned count = 8;
  ASSERT_EQ(nvmlDeviceGetComputeRunningProcesses_v3(device, &count, infos), NVML_SUCCESS);
  EXPECT_EQ(count, 2u);
}

TEST_F(NvmlProcesses, NamesAreToldOfTheSharesOwnOnly) {
  char name[64] = "";
  EXPECT_EQ(nvmlSystemGetProcessName(70, name, sizeof name), NVML_SUCCESS);
  EXPECT_STREQ(name, "program-70");
  EXPECT_EQ(nvmlSystemGetProcessName(kStranger, name, sizeof name), NVML_ERROR_NOT_FOUND);
  EXPECT_EQ(nvmlSystemGetProcessName(1070, name, sizeof name), NVML_ERROR_NOT_FOUND);
  EXPECT_EQ(nvmlSystemGetProcessName(70, nullptr, 0), NVML_ERROR_INVALID_ARGUMENT);
}

TEST_F(NvmlProcesses, UtilisationSamplesAreTheSharesOwnUnderTheCallersPids) {
  unsigned count = 0;
  EXPECT_EQ(nvmlDeviceGetProcessUtilization(device, nullptr, &count, 0),
            NVML_ERROR_INSUFFICIENT_SIZE);
  ASSERT_EQ(count, 2u);
  nvmlProcessUtilizationSample_t samples[2];
  ASSERT_EQ(nvmlDeviceGetProcessUtilization(device, samples, &count, 0), NVML_SUCCESS);
  ASSERT_EQ(count, 2u);
  EXPECT_EQ(samples[0].pid, 70u);
  EXPECT_EQ(samples[1].pid, 71u);
  EXPECT_EQ(samples[1].sm, 40u);
  EXPECT_EQ(nvmlDeviceGetProcessUtilization(device, samples, nullptr, 0),
            NVML_ERROR_INVALID_ARGUMENT);
}

TEST_F(NvmlProcesses, SamplesOfOthersAloneAreNone) {
  share.fake.processes = {{1, kStranger, 999 * kMiB, 90}};
  nvmlProcessUtilizationSample_t samples[4];
  unsigned count = 4;
  EXPECT_EQ(nvmlDeviceGetProcessUtilization(device, samples, &count, 0), NVML_ERROR_NOT_FOUND);
}

TEST_F(NvmlProcesses, TheNewerSamplesToo) {
  nvmlProcessUtilizationInfo_v1_t samples[4] = {};
  nvmlProcessesUtilizationInfo_t info{
      driver_abi::nvml_struct_version<nvmlProcessesUtilizationInfo_t>(1), 4, 0, samples};
  ASSERT_EQ(nvmlDeviceGetProcessesUtilizationInfo(device, &info), NVML_SUCCESS);
  ASSERT_EQ(info.count, 2u);
  EXPECT_EQ(samples[0].pid, 70u);
  EXPECT_EQ(info.last_seen_us, 1000u);
  info.count = 1;
  EXPECT_EQ(nvmlDeviceGetProcessesUtilizationInfo(device, &info), NVML_ERROR_INSUFFICIENT_SIZE);
  EXPECT_EQ(info.count, 2u);
  info.version = 1;
  EXPECT_EQ(nvmlDeviceGetProcessesUtilizationInfo(device, &info),
            NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
}

TEST_F(NvmlProcesses, AccountingKnowsTheSharesOwnOnly) {
  unsigned pids[8];
  unsigned count = 8;
  ASSERT_EQ(nvmlDeviceGetAccountingPids(device, &count, pids), NVML_SUCCESS);
  EXPECT_THAT(std::vector<unsigned>(pids, pids + count), ElementsAre(70, 71));
  count = 0;
  EXPECT_EQ(nvmlDeviceGetAccountingPids(device, &count, nullptr), NVML_ERROR_INSUFFICIENT_SIZE);
  nvmlAccountingStats_t stats{};
  EXPECT_EQ(nvmlDeviceGetAccountingStats(device, 71, &stats), NVML_SUCCESS);
  EXPECT_EQ(stats.max_memory_bytes, 32 * kMiB);
  EXPECT_EQ(nvmlDeviceGetAccountingStats(device, kStranger, &stats), NVML_ERROR_NOT_FOUND);
  nvmlAccountingStats_v2_t newer{};
  newer.pid = 70;
  EXPECT_EQ(nvmlDeviceGetAccountingStats_v2(device, &newer), NVML_SUCCESS);
  EXPECT_EQ(newer.max_memory_bytes, 64 * kMiB);
  EXPECT_EQ(newer.pid, 70u);
  newer.pid = kStranger;
  EXPECT_EQ(nvmlDeviceGetAccountingStats_v2(device, &newer), NVML_ERROR_NOT_FOUND);
}

TEST_F(NvmlProcesses, EncoderAndCaptureSessionsAreTheSharesOwn) {
  nvmlEncoderSessionInfo_t encoders[4];
  unsigned count = 4;
  ASSERT_EQ(nvmlDeviceGetEncoderSessions(device, &count, encoders), NVML_SUCCESS);
  ASSERT_EQ(count, 2u);
  EXPECT_EQ(encoders[1].pid, 71u);
  nvmlFBCSessionInfo_t captures[4];
  count = 4;
  ASSERT_EQ(nvmlDeviceGetFBCSessions(device, &count, captures), NVML_SUCCESS);
  ASSERT_EQ(count, 2u);
  EXPECT_EQ(captures[0].pid, 70u);
  count = 0;
  EXPECT_EQ(nvmlDeviceGetFBCSessions(device, &count, nullptr), NVML_SUCCESS);
  EXPECT_EQ(count, 2u);
}

TEST_F(NvmlProcesses, TheLibrarysErrorsAreReturned) {
  unsigned count = 4;
  nvmlProcessUtilizationSample_t samples[4];
  share.fake.fail["nvmlDeviceGetProcessUtilization"] = NVML_ERROR_NOT_SUPPORTED;
  EXPECT_EQ(nvmlDeviceGetProcessUtilization(device, samples, &count, 0), NVML_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(count, 4u);
  unsigned pids[4];
  share.fake.fail["nvmlDeviceGetAccountingPids"] = NVML_ERROR_UNKNOWN;
  EXPECT_EQ(nvmlDeviceGetAccountingPids(device, &count, pids), NVML_ERROR_UNKNOWN);
}

}  // namespace
}  // namespace aliquot::interposer
