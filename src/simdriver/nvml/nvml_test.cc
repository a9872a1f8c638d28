#include <gtest/gtest.h>

#include <array>
#include <memory>

#include "driver_abi/nvml_table.h"
#include "simdriver/nvml/answer.h"
#include "simdriver/nvml/bodies.h"
#include "simdriver/nvml/fake_telemetry.h"
#include "simdriver/nvml/unsupported.h"
#include "simdriver/presets.h"

namespace aliquot::simdriver::nvml {
namespace {

using namespace bodies;
using driver_abi::nvml_struct_version;

class Nvml : public testing::Test {
 protected:
  void SetUp() override { start("a100x8"); }
  void TearDown() override { nvmlShutdown(); }

  void start(const char* node) {
    while (nvmlShutdown() == NVML_SUCCESS) continue;
    machine_ = *make_machine({.node = node, .name = "lab", .cuda = ""}, *simulator_directory());
    auto fake = std::make_unique<FakeTelemetry>(machine_);
    fake_ = fake.get();
    Library::instance().use(machine_, std::move(fake));
    ASSERT_EQ(nvmlInit_v2(), NVML_SUCCESS);
  }

  static nvmlDevice_t gpu(unsigned index) {
    nvmlDevice_t device = nullptr;
    EXPECT_EQ(nvmlDeviceGetHandleByIndex_v2(index, &device), NVML_SUCCESS);
    return device;
  }

  // The one output of a call that succeeds.
  template <typename T>
  static T told(nvmlReturn_t (*call)(nvmlDevice_t, T*), nvmlDevice_t device) {
    T out{};
    EXPECT_EQ(call(device, &out), NVML_SUCCESS);
    return out;
  }
  template <typename T, typename What>
  static T told(nvmlReturn_t (*call)(nvmlDevice_t, What, T*), nvmlDevice_t device,
                std::type_identity_t<What> what) {
    T out{};
    EXPECT_EQ(call(device, what, &out), NVML_SUCCESS);
    return out;
  }

  static nvmlFieldValue_t field(unsigned index, unsigned id, unsigned scope = 0) {
    nvmlFieldValue_t out{};
    out.field = id;
    out.scope = scope;
    EXPECT_EQ(nvmlDeviceGetFieldValues(gpu(index), 1, &out), NVML_SUCCESS);
    return out;
  }

  MachineSpec machine_;
  FakeTelemetry* fake_ = nullptr;
};

TEST_F(Nvml, AnswersNothingBeforeInitAndAfterTheLastShutdown) {
  ASSERT_EQ(nvmlInitWithFlags(0), NVML_SUCCESS);
  unsigned count = 0;
  EXPECT_EQ(nvmlShutdown(), NVML_SUCCESS);
  EXPECT_EQ(nvmlDeviceGetCount_v2(&count), NVML_SUCCESS);  // the first init still holds
  EXPECT_EQ(nvmlShutdown(), NVML_SUCCESS);
  EXPECT_EQ(nvmlDeviceGetCount_v2(&count), NVML_ERROR_UNINITIALIZED);
  EXPECT_EQ(nvmlShutdown(), NVML_ERROR_UNINITIALIZED);
}

TEST_F(Nvml, EveryRowHasABodyOrAReason) {
  std::string missing;
#define ALIQUOT_ENTRY(symbol, base, since, until, kind, params, args) \
  if (bodies::symbol == nullptr && why_unsupported(#symbol).empty()) missing += #symbol "\n";
#include "driver_abi/nvml_entry_points.def"
  EXPECT_EQ(missing, "");
}

TEST_F(Nvml, FindsAGpuByEveryName) {
  const nvmlDevice_t third = gpu(2);
  nvmlDevice_t found = nullptr;
  const std::string uuid = gpu_uuid_text(machine_.gpus[2].uuid);
  for (const char* text : {uuid.c_str(), uuid.c_str() + 4}) {  // also without "GPU-"
    found = nullptr;
    EXPECT_EQ(nvmlDeviceGetHandleByUUID(text, &found), NVML_SUCCESS) << text;
    EXPECT_EQ(found, third);
  }
  for (const char* bus : {"0000:47:00.0", "00000000:47:00.0", "47:00.0"}) {
    found = nullptr;
    EXPECT_EQ(nvmlDeviceGetHandleByPciBusId_v2(bus, &found), NVML_SUCCESS) << bus;
    EXPECT_EQ(found, third);
  }
  EXPECT_EQ(nvmlDeviceGetHandleBySerial(machine_.gpus[2].serial.c_str(), &found), NVML_SUCCESS);
  EXPECT_EQ(found, third);
  nvmlUUID_t binary{};
  binary.version = nvml_struct_version<nvmlUUID_t>(1);
  binary.type = NVML_UUID_TYPE_BINARY;
  std::ranges::copy(machine_.gpus[2].uuid, binary.bytes);
  EXPECT_EQ(nvmlDeviceGetHandleByUUIDV(&binary, &found), NVML_SUCCESS);
  EXPECT_EQ(found, third);

  EXPECT_EQ(nvmlDeviceGetHandleByIndex_v2(8, &found), NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(nvmlDeviceGetHandleByUUID("GPU-none", &found), NVML_ERROR_NOT_FOUND);
  EXPECT_EQ(nvmlDeviceGetHandleByPciBusId_v2("junk", &found), NVML_ERROR_INVALID_ARGUMENT);
}

TEST_F(Nvml, RefusesHandlesThatItDidNotGive) {
  unsigned out = 0;
  nvmlDevice_st foreign{.gpu = 0};
  EXPECT_EQ(nvmlDeviceGetIndex(nullptr, &out), NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(nvmlDeviceGetIndex(&foreign, &out), NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(nvmlDeviceGetIndex(gpu(0), nullptr), NVML_ERROR_INVALID_ARGUMENT);
}

TEST_F(Nvml, TextsNeedRoomForTheirEnd) {
  std::array<char, 96> name{};
  const unsigned length = 21;  // "NVIDIA A100-SXM4-80GB" without its end
  EXPECT_EQ(nvmlDeviceGetName(gpu(0), name.data(), length), NVML_ERROR_INSUFFICIENT_SIZE);
  EXPECT_EQ(nvmlDeviceGetName(gpu(0), name.data(), length + 1), NVML_SUCCESS);
  EXPECT_STREQ(name.data(), "NVIDIA A100-SXM4-80GB");
}

TEST_F(Nvml, BothMemoryVersionsAreOneAccount) {
  fake_->use[0].figures.used_bytes = 5ull << 30;
  const auto first = told(nvmlDeviceGetMemoryInfo, gpu(0));
  nvmlMemory_v2_t second{};
  second.version = nvml_struct_version<nvmlMemory_v2_t>(2);
  ASSERT_EQ(nvmlDeviceGetMemoryInfo_v2(gpu(0), &second), NVML_SUCCESS);
  EXPECT_EQ(second.total, 81920ull << 20);
  EXPECT_EQ(second.used, 5ull << 30);
  EXPECT_EQ(second.total, second.used + second.free + second.reserved);
  EXPECT_EQ(first.total, second.total);
  EXPECT_EQ(first.free, second.free);
  EXPECT_EQ(first.used, second.used + second.reserved);
  second.version = 1;
  EXPECT_EQ(nvmlDeviceGetMemoryInfo_v2(gpu(0), &second), NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
}

TEST_F(Nvml, ListsProcessesInEveryVersionOfTheStruct) {
  fake_->use[1].processes = {{100, ProcessUse::kCompute, 1 << 20, 0},
                             {200, ProcessUse::kMps, 2 << 20, 0},
                             {300, ProcessUse::kCompute, 3 << 20, 0}};
  unsigned count = 0;
  EXPECT_EQ(nvmlDeviceGetComputeRunningProcesses_v3(gpu(1), &count, nullptr),
            NVML_ERROR_INSUFFICIENT_SIZE);
  ASSERT_EQ(count, 2u);
  std::array<nvmlProcessInfo_t, 2> third{};
  ASSERT_EQ(nvmlDeviceGetComputeRunningProcesses_v3(gpu(1), &count, third.data()), NVML_SUCCESS);
  EXPECT_EQ(third[1].pid, 300u);
  EXPECT_EQ(third[1].used_bytes, 3u << 20);
  EXPECT_EQ(third[1].gpu_instance, 0xffffffffu);
  std::array<nvmlProcessInfo_v1_t, 4> first{};
  count = 4;
  ASSERT_EQ(nvmlDeviceGetComputeRunningProcesses(gpu(1), &count, first.data()), NVML_SUCCESS);
  EXPECT_EQ(count, 2u);
  EXPECT_EQ(first[0].pid, 100u);
  ASSERT_EQ(nvmlDeviceGetMPSComputeRunningProcesses_v3(gpu(1), &count, third.data()), NVML_SUCCESS);
  EXPECT_EQ(third[0].pid, 200u);
  count = 0;
  EXPECT_EQ(nvmlDeviceGetGraphicsRunningProcesses_v3(gpu(1), &count, nullptr), NVML_SUCCESS);
}

TEST_F(Nvml, ClocksPowerAndStatesAgreeWithUtilisation) {
  EXPECT_EQ(told(nvmlDeviceGetPowerUsage, gpu(0)), 62'000u);
  EXPECT_EQ(told(nvmlDeviceGetCurrentClocksEventReasons, gpu(0)), nvmlClocksEventReasonGpuIdle);
  fake_->use[0].figures.gpu_percent = 100;
  fake_->use[0].figures.memory_percent = 12;
  EXPECT_EQ(told(nvmlDeviceGetUtilizationRates, gpu(0)).gpu, 100u);
  EXPECT_EQ(told(nvmlDeviceGetUtilizationRates, gpu(0)).memory, 12u);
  EXPECT_EQ(told(nvmlDeviceGetPowerUsage, gpu(0)), 366'200u);
  EXPECT_EQ(told(nvmlDeviceGetClockInfo, gpu(0), NVML_CLOCK_SM), 1410u);
  EXPECT_EQ(told(nvmlDeviceGetCurrentClocksEventReasons, gpu(0)), 0u);
  EXPECT_EQ(told(nvmlDeviceGetPerformanceState, gpu(0)), NVML_PSTATE_0);
}

TEST_F(Nvml, SetsWhatAnAdministratorMay) {
  EXPECT_EQ(nvmlDeviceSetPowerManagementLimit(gpu(0), 250'000), NVML_SUCCESS);
  EXPECT_EQ(told(nvmlDeviceGetEnforcedPowerLimit, gpu(0)), 250'000u);
  EXPECT_EQ(nvmlDeviceSetPowerManagementLimit(gpu(0), 1), NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(nvmlDeviceSetComputeMode(gpu(0), NVML_COMPUTEMODE_EXCLUSIVE_PROCESS), NVML_SUCCESS);
  EXPECT_EQ(told(nvmlDeviceGetComputeMode, gpu(0)), NVML_COMPUTEMODE_EXCLUSIVE_PROCESS);
  EXPECT_EQ(told(nvmlDeviceGetComputeMode, gpu(1)), NVML_COMPUTEMODE_DEFAULT);
}

TEST_F(Nvml, ProcessUtilisationAsksForRoomFirst) {
  nvmlProcessUtilizationSample_t sample{};
  unsigned count = 0;
  EXPECT_EQ(nvmlDeviceGetProcessUtilization(gpu(0), nullptr, &count, 0), NVML_ERROR_NOT_FOUND);
  fake_->gpu_samples[0] = {{1000, 7, 30}, {2000, 7, 40}};
  EXPECT_EQ(nvmlDeviceGetProcessUtilization(gpu(0), nullptr, &count, 0),
            NVML_ERROR_INSUFFICIENT_SIZE);
  ASSERT_EQ(count, 1u);
  ASSERT_EQ(nvmlDeviceGetProcessUtilization(gpu(0), &sample, &count, 0), NVML_SUCCESS);
  EXPECT_EQ(sample.pid, 7u);
  EXPECT_EQ(sample.sm, 40u);  // the newest
  EXPECT_EQ(nvmlDeviceGetProcessUtilization(gpu(0), &sample, &count, 2000), NVML_ERROR_NOT_FOUND);
}

TEST_F(Nvml, SamplesOfPowerFollowThoseOfUtilisation) {
  fake_->gpu_samples[0] = {{1000, 0, 0}, {2000, 0, 100}};
  nvmlValueType_t type = 0;
  unsigned count = 0;
  ASSERT_EQ(nvmlDeviceGetSamples(gpu(0), NVML_TOTAL_POWER_SAMPLES, 0, &type, &count, nullptr),
            NVML_SUCCESS);
  ASSERT_EQ(count, 2u);
  std::array<nvmlSample_t, 2> samples{};
  ASSERT_EQ(
      nvmlDeviceGetSamples(gpu(0), NVML_TOTAL_POWER_SAMPLES, 0, &type, &count, samples.data()),
      NVML_SUCCESS);
  EXPECT_EQ(type, NVML_VALUE_TYPE_UNSIGNED_INT);
  EXPECT_EQ(samples[0].value.as_uint, 62'000u);
  EXPECT_EQ(samples[1].value.as_uint, 366'200u);
  EXPECT_EQ(nvmlDeviceGetSamples(gpu(0), NVML_MODULE_POWER_SAMPLES, 0, &type, &count, nullptr),
            NVML_ERROR_NOT_SUPPORTED);
}

TEST_F(Nvml, ALostGpuSaysSoAndKeepsItsName) {
  fake_->board.apply(FaultRequest{3, FaultKind::kGpuLost, 0});
  unsigned out = 0;
  EXPECT_EQ(nvmlDeviceGetPowerUsage(gpu(3), &out), NVML_ERROR_GPU_IS_LOST);
  EXPECT_EQ(nvmlDeviceGetPowerUsage(gpu(2), &out), NVML_SUCCESS);
  EXPECT_EQ(told(nvmlDeviceGetIndex, gpu(3)), 3u);
}

TEST_F(Nvml, EccErrorsShowInEveryCounter) {
  fake_->board.apply(FaultRequest{0, FaultKind::kEccDouble, 2});
  unsigned long long count = 0;
  ASSERT_EQ(nvmlDeviceGetTotalEccErrors(gpu(0), NVML_MEMORY_ERROR_TYPE_UNCORRECTED,
                                        NVML_VOLATILE_ECC, &count),
            NVML_SUCCESS);
  EXPECT_EQ(count, 2u);
  nvmlFieldValue_t field{};
  field.field = NVML_FI_DEV_ECC_DBE_VOL_TOTAL;
  ASSERT_EQ(nvmlDeviceGetFieldValues(gpu(0), 1, &field), NVML_SUCCESS);
  EXPECT_EQ(field.result, NVML_SUCCESS);
  EXPECT_EQ(field.value.as_ullong, 2u);
}

TEST_F(Nvml, RemappedRowsAreTheSameInCallFieldsAndHistogram) {
  const auto order = [&](RowRemap what) {
    EXPECT_TRUE(fake_->board.apply({0, FaultKind::kRowRemap, static_cast<std::uint64_t>(what)}));
  };
  using Rows = std::array<unsigned, 4>;  // for corrected and uncorrected errors, pending, failed
  const auto rows = [&] {
    Rows out{};
    EXPECT_EQ(nvmlDeviceGetRemappedRows(gpu(0), &out[0], &out[1], &out[2], &out[3]), NVML_SUCCESS);
    for (unsigned i = 0; i < 4; ++i)
      EXPECT_EQ(field(0, NVML_FI_DEV_REMAPPED_COR + i).value.as_uint, out[i]) << i;
    return out;
  };
  using Banks = std::array<unsigned, 5>;  // by the spare rows that they have: max to none
  const auto banks = [&] {
    const auto it = told(nvmlDeviceGetRowRemapperHistogram, gpu(0));
    return Banks{it.max, it.high, it.partial, it.low, it.none};
  };
  EXPECT_EQ(rows(), (Rows{0, 0, 0, 0}));
  EXPECT_EQ(banks(), (Banks{640, 0, 0, 0, 0}));
  order(RowRemap::kPending);
  EXPECT_EQ(rows(), (Rows{0, 1, 1, 0}));
  EXPECT_EQ(banks(), (Banks{639, 1, 0, 0, 0}));
  order(RowRemap::kFailed);
  EXPECT_EQ(rows(), (Rows{0, 8, 1, 1}));
  EXPECT_EQ(banks(), (Banks{639, 0, 0, 0, 1}));
  fake_->board.apply(FaultRequest{0, FaultKind::kNone, 0});
  EXPECT_EQ(rows(), (Rows{0, 8, 0, 0}));
  EXPECT_EQ(banks(), (Banks{639, 0, 0, 0, 1}));

  start("t4x1");  // retires pages instead
  Rows none{};
  EXPECT_EQ(nvmlDeviceGetRemappedRows(gpu(0), &none[0], &none[1], &none[2], &none[3]),
            NVML_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(field(0, NVML_FI_DEV_REMAPPED_PENDING).result, NVML_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(field(0, NVML_FI_DEV_RETIRED_SBE).result, NVML_SUCCESS);
}

TEST_F(Nvml, FieldsThatAGpuHasNotSayItOneByOne) {
  std::array<nvmlFieldValue_t, 2> fields{};
  fields[0].field = NVML_FI_DEV_RETIRED_SBE;  // Ampere remaps rows
  fields[1].field = NVML_FI_DEV_NVLINK_LINK_COUNT;
  ASSERT_EQ(nvmlDeviceGetFieldValues(gpu(0), 2, fields.data()), NVML_SUCCESS);
  EXPECT_EQ(fields[0].result, NVML_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(fields[1].result, NVML_SUCCESS);
  EXPECT_EQ(fields[1].value.as_uint, 12u);
}

TEST_F(Nvml, TopologyFollowsTheMachinesMatrix) {
  const auto level = [&](unsigned a, unsigned b) {
    nvmlGpuTopologyLevel_t out = -1;
    EXPECT_EQ(nvmlDeviceGetTopologyCommonAncestor(gpu(a), gpu(b), &out), NVML_SUCCESS);
    return out;
  };
  EXPECT_EQ(level(0, 1), NVML_TOPOLOGY_MULTIPLE);
  EXPECT_EQ(level(0, 2), NVML_TOPOLOGY_NODE);
  EXPECT_EQ(level(0, 7), NVML_TOPOLOGY_SYSTEM);
  unsigned count = 0;
  ASSERT_EQ(nvmlDeviceGetTopologyNearestGpus(gpu(0), NVML_TOPOLOGY_SYSTEM, &count, nullptr),
            NVML_SUCCESS);
  EXPECT_EQ(count, 4u);
  nvmlGpuP2PStatus_t status = -1;
  ASSERT_EQ(nvmlDeviceGetP2PStatus(gpu(0), gpu(7), NVML_P2P_CAPS_INDEX_NVLINK, &status),
            NVML_SUCCESS);
  EXPECT_EQ(status, NVML_P2P_STATUS_OK);
  std::array<unsigned long, 4> cpus{};
  ASSERT_EQ(nvmlDeviceGetCpuAffinity(gpu(7), 4, cpus.data()), NVML_SUCCESS);
  EXPECT_EQ(cpus[0], 0xffffffff00000000u);  // 32-63
  EXPECT_EQ(cpus[1], 0xffffffff00000000u);  // 96-127
  EXPECT_EQ(nvmlDeviceGetCpuAffinity(gpu(7), 1, cpus.data()), NVML_ERROR_INSUFFICIENT_SIZE);
}

TEST_F(Nvml, NvlinksOfAMeshMeetAtBothEnds) {
  start("dgx1-v100");
  for (unsigned a = 0; a < 8; ++a) {
    for (unsigned link = 0; link < 6; ++link) {
      nvmlPciInfo_t remote{};
      ASSERT_EQ(nvmlDeviceGetNvLinkRemotePciInfo_v2(gpu(a), link, &remote), NVML_SUCCESS);
      nvmlFieldValue_t id{};
      id.field = NVML_FI_DEV_NVLINK_REMOTE_NVLINK_ID;
      id.scope = link;
      ASSERT_EQ(nvmlDeviceGetFieldValues(gpu(a), 1, &id), NVML_SUCCESS);
      nvmlDevice_t other = nullptr;
      ASSERT_EQ(nvmlDeviceGetHandleByPciBusId_v2(remote.bus_id, &other), NVML_SUCCESS);
      nvmlPciInfo_t back{};
      ASSERT_EQ(nvmlDeviceGetNvLinkRemotePciInfo_v2(other, id.value.as_uint, &back), NVML_SUCCESS);
      EXPECT_EQ(back.bus, machine_.gpus[a].pci.bus) << a << ":" << link;
    }
  }
  unsigned version = 0;
  EXPECT_EQ(nvmlDeviceGetNvLinkVersion(gpu(0), 6, &version), NVML_ERROR_INVALID_ARGUMENT);
}

TEST_F(Nvml, ALinkThatIsDownShowsInItsStateAndCount) {
  fake_->board.apply(FaultRequest{0, FaultKind::kLinkDown, 1u << 3});
  EXPECT_EQ(told(nvmlDeviceGetNvLinkState, gpu(0), 3), NVML_FEATURE_DISABLED);
  EXPECT_EQ(told(nvmlDeviceGetNvLinkState, gpu(0), 4), NVML_FEATURE_ENABLED);
  nvmlFieldValue_t field{};
  field.field = NVML_FI_DEV_NVSWITCH_CONNECTED_LINK_COUNT;
  ASSERT_EQ(nvmlDeviceGetFieldValues(gpu(0), 1, &field), NVML_SUCCESS);
  EXPECT_EQ(field.value.as_uint, 11u);
}

TEST_F(Nvml, ErrorsOfALinkShowInItsCounterAndFieldsUntilTheyAreReset) {
  const auto errors = [&](unsigned link, nvmlNvLinkErrorCounter_t counter) {
    unsigned long long count = 99;
    EXPECT_EQ(nvmlDeviceGetNvLinkErrorCounter(gpu(0), link, counter, &count), NVML_SUCCESS);
    return count;
  };
  EXPECT_TRUE(fake_->board.apply({0, FaultKind::kLinkErrors, errors_of_link(2, 5)}));
  EXPECT_TRUE(fake_->board.apply({0, FaultKind::kLinkErrors, errors_of_link(7, 3)}));
  EXPECT_EQ(errors(2, NVML_NVLINK_ERROR_DL_CRC_FLIT), 5u);
  EXPECT_EQ(errors(3, NVML_NVLINK_ERROR_DL_CRC_FLIT), 0u);
  EXPECT_EQ(errors(2, NVML_NVLINK_ERROR_DL_REPLAY), 0u);
  EXPECT_EQ(field(0, NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_L2).value.as_ullong, 5u);
  EXPECT_EQ(field(0, NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_L7).value.as_ullong, 3u);
  EXPECT_EQ(field(0, NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL).value.as_ullong, 8u);
  EXPECT_EQ(field(0, NVML_FI_DEV_NVLINK_ERROR_DL_CRC, 7).value.as_ullong, 3u);
  EXPECT_EQ(field(0, NVML_FI_DEV_NVLINK_ERROR_DL_CRC, 12).result, NVML_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(field(0, NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL).value.as_ullong, 0u);
  EXPECT_EQ(nvmlDeviceResetNvLinkErrorCounters(gpu(0), 2), NVML_SUCCESS);
  EXPECT_EQ(errors(2, NVML_NVLINK_ERROR_DL_CRC_FLIT), 0u);
  EXPECT_EQ(errors(7, NVML_NVLINK_ERROR_DL_CRC_FLIT), 3u);
  EXPECT_EQ(nvmlDeviceResetNvLinkErrorCounters(gpu(0), 12), NVML_ERROR_INVALID_ARGUMENT);
  start("l40sx4");
  EXPECT_EQ(nvmlDeviceResetNvLinkErrorCounters(gpu(0), 0), NVML_ERROR_NOT_SUPPORTED);
}

TEST_F(Nvml, MigProfilesAreThoseOfTheProduct) {
  nvmlGpuInstanceProfileInfo_v2_t info{};
  info.version = nvml_struct_version<nvmlGpuInstanceProfileInfo_v2_t>(2);
  ASSERT_EQ(nvmlDeviceGetGpuInstanceProfileInfoV(gpu(0), NVML_GPU_INSTANCE_PROFILE_3_SLICE, &info),
            NVML_SUCCESS);
  EXPECT_STREQ(info.name, "MIG 3g.40gb");
  EXPECT_EQ(info.id, 9u);
  EXPECT_EQ(info.multiprocessors, 42u);
  unsigned count = 0;
  ASSERT_EQ(nvmlDeviceGetGpuInstancePossiblePlacements_v2(gpu(0), info.id, nullptr, &count),
            NVML_SUCCESS);
  ASSERT_EQ(count, 2u);
  std::array<nvmlGpuInstancePlacement_t, 2> places{};
  ASSERT_EQ(nvmlDeviceGetGpuInstancePossiblePlacements_v2(gpu(0), info.id, places.data(), &count),
            NVML_SUCCESS);
  EXPECT_EQ(places[1].start, 4u);
  EXPECT_EQ(places[1].size, 4u);
  nvmlGpuInstanceProfileInfo_t first{};
  ASSERT_EQ(
      nvmlDeviceGetGpuInstanceProfileInfo(gpu(0), NVML_GPU_INSTANCE_PROFILE_1_SLICE_REV2, &first),
      NVML_SUCCESS);
  EXPECT_EQ(first.id, 15u);  // 1g.20gb
  unsigned seen = 0;
  for (unsigned profile = 0; profile < NVML_GPU_INSTANCE_PROFILE_COUNT; ++profile)
    seen += nvmlDeviceGetGpuInstanceProfileInfo(gpu(0), profile, &first) == NVML_SUCCESS;
  EXPECT_EQ(seen, 7u);
  start("t4x1");
  unsigned mode = 0;
  EXPECT_EQ(nvmlDeviceGetMigMode(gpu(0), &mode, &mode), NVML_ERROR_NOT_SUPPORTED);
}

TEST_F(Nvml, FansAndEccAreThereWhereTheProductHasThem) {
  unsigned out = 0;
  nvmlEnableState_t on = 0;
  EXPECT_EQ(nvmlDeviceGetFanSpeed(gpu(0), &out), NVML_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(nvmlDeviceGetEccMode(gpu(0), &on, &on), NVML_SUCCESS);
  start("rtx4090x8");
  EXPECT_EQ(nvmlDeviceGetFanSpeed_v2(gpu(0), 1, &out), NVML_SUCCESS);
  EXPECT_EQ(nvmlDeviceGetFanSpeed_v2(gpu(0), 2, &out), NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(nvmlDeviceGetEccMode(gpu(0), &on, &on), NVML_ERROR_NOT_SUPPORTED);
}

}  // namespace
}  // namespace aliquot::simdriver::nvml
