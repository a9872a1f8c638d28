// Every fault on command: how NVML shows it, what a program of the driver API meets, and that it
// goes away when it is lifted.
#include <chrono>
#include <string_view>

#include "driver_abi/nvml_constants.h"
#include "driver_abi/nvml_functions.h"
#include "simdriver/cuda/test_driver.h"
#include "simdriver/faults.h"

// The process's dlsym, as a preloaded library would bring it: counts what the driver asks.
namespace {
int driver_lookups = 0;
}
extern "C" void* dlsym(void* handle, const char* name) noexcept {
  static const auto real =
      reinterpret_cast<void* (*)(void*, const char*)>(dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5"));
  if (std::string_view(name) == "cuMemAlloc_v2") ++driver_lookups;
  return real(handle, name);
}

namespace aliquot::simdriver::test {
namespace {

[[maybe_unused]] const auto* const kMachine = machine_for_tests("a100x2");

template <typename Function>
Function nvml(const char* symbol) {
  static void* const handle = dlopen(
      (machine_directory("test") / "lib" / "libnvidia-ml.so.1").c_str(), RTLD_NOW | RTLD_LOCAL);
  void* function = handle == nullptr ? nullptr : dlsym(handle, symbol);
  if (function == nullptr) ADD_FAILURE() << symbol << " is not there";
  return reinterpret_cast<Function>(function);
}
#define NVML(symbol) (nvml<::aliquot::driver_abi::fn::symbol>(#symbol))

class Faults : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(CU(cuInit)(0), CUDA_SUCCESS);
    ASSERT_EQ(NVML(nvmlInit_v2)(), NVML_SUCCESS);
    ASSERT_EQ(NVML(nvmlDeviceGetHandleByIndex_v2)(1, &device_), NVML_SUCCESS);
    ASSERT_EQ(NVML(nvmlEventSetCreate)(&events_), NVML_SUCCESS);
    const unsigned long long kinds = nvmlEventTypeXidCriticalError |
                                     nvmlEventTypeSingleBitEccError |
                                     nvmlEventTypeDoubleBitEccError;
    ASSERT_EQ(NVML(nvmlDeviceRegisterEvents)(device_, kinds, events_), NVML_SUCCESS);
    retain();
  }
  void TearDown() override {
    inject(FaultKind::kNone);
    EXPECT_TRUE(lift_call_faults(machine()));
    CU(cuDevicePrimaryCtxReset_v2)(1);
    NVML(nvmlEventSetFree)(events_);
    NVML(nvmlShutdown)();
  }
  static RunningMachine machine() { return {"test", machine_directory("test"), 0}; }
  void retain() {
    ASSERT_EQ(CU(cuDevicePrimaryCtxRetain)(&context_, 1), CUDA_SUCCESS);
    ASSERT_EQ(CU(cuCtxSetCurrent)(context_), CUDA_SUCCESS);
  }
  static void inject(FaultKind kind, std::uint64_t value = 0) {
    const Status injected = inject_fault(machine(), {1, kind, value});
    EXPECT_TRUE(injected) << injected.error().message;
  }
  // The next event, if there is one already.
  std::pair<unsigned long long, unsigned long long> event() {
    nvmlEventData_t data{};
    const nvmlReturn_t result = NVML(nvmlEventSetWait_v2)(events_, &data, 2000);
    EXPECT_EQ(result, NVML_SUCCESS);
    return {data.type, data.data};
  }
  CUresult allocate() {
    CUdeviceptr address = 0;
    const CUresult result = CU(cuMemAlloc_v2)(&address, 4096);
    if (result == CUDA_SUCCESS) CU(cuMemFree_v2)(address);
    return result;
  }
  // A context that ended stays so; a new one serves.
  void expect_a_new_context_works() {
    EXPECT_EQ(CU(cuDevicePrimaryCtxReset_v2)(1), CUDA_SUCCESS);
    retain();
    EXPECT_EQ(allocate(), CUDA_SUCCESS);
  }
  unsigned long long ecc(nvmlMemoryErrorType_t type) {
    unsigned long long count = 0;
    EXPECT_EQ(NVML(nvmlDeviceGetTotalEccErrors)(device_, type, NVML_VOLATILE_ECC, &count),
              NVML_SUCCESS);
    return count;
  }
  nvmlReturn_t temperature() {
    unsigned degrees = 0;
    return NVML(nvmlDeviceGetTemperature)(device_, NVML_TEMPERATURE_GPU, &degrees);
  }

  nvmlDevice_t device_ = nullptr;
  nvmlEventSet_t events_ = nullptr;
  CUcontext context_ = nullptr;
};

using Told = std::pair<unsigned long long, unsigned long long>;

TEST_F(Faults, AFatalXidIsToldAndEndsTheContext) {
  EXPECT_EQ(allocate(), CUDA_SUCCESS);
  inject(FaultKind::kXid, 31);
  EXPECT_EQ(event(), Told(nvmlEventTypeXidCriticalError, 31));
  EXPECT_EQ(allocate(), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(CU(cuCtxSynchronize)(), CUDA_ERROR_ILLEGAL_ADDRESS);
  expect_a_new_context_works();
}

TEST_F(Faults, AnXidThatIsOnlyTold) {
  inject(FaultKind::kXid, 63);
  EXPECT_EQ(event(), Told(nvmlEventTypeXidCriticalError, 63));
  EXPECT_EQ(allocate(), CUDA_SUCCESS);
}

TEST_F(Faults, ALostGpuAnswersNothingThatChangesUntilItIsBack) {
  inject(FaultKind::kGpuLost);
  EXPECT_EQ(event(), Told(nvmlEventTypeXidCriticalError, 79));
  EXPECT_EQ(temperature(), NVML_ERROR_GPU_IS_LOST);
  char name[96] = {};
  EXPECT_EQ(NVML(nvmlDeviceGetName)(device_, name, sizeof(name)), NVML_SUCCESS);
  EXPECT_EQ(allocate(), CUDA_ERROR_UNKNOWN);
  CUcontext another = nullptr;
  EXPECT_EQ(CU(cuCtxCreate_v2)(&another, 0, 1), CUDA_ERROR_DEVICE_UNAVAILABLE);
  CUcontext elsewhere = nullptr;
  EXPECT_EQ(CU(cuCtxCreate_v2)(&elsewhere, 0, 0), CUDA_SUCCESS);
  EXPECT_EQ(allocate(), CUDA_SUCCESS);
  EXPECT_EQ(CU(cuCtxDestroy_v2)(elsewhere), CUDA_SUCCESS);

  inject(FaultKind::kNone);
  EXPECT_EQ(temperature(), NVML_SUCCESS);
  expect_a_new_context_works();
}

TEST_F(Faults, CorrectedErrorsAreCountedAndHarmNobody) {
  const unsigned long long before = ecc(NVML_MEMORY_ERROR_TYPE_CORRECTED);
  inject(FaultKind::kEccSingle, 3);
  EXPECT_EQ(event(), Told(nvmlEventTypeSingleBitEccError, 3));
  EXPECT_EQ(ecc(NVML_MEMORY_ERROR_TYPE_CORRECTED), before + 3);
  EXPECT_EQ(allocate(), CUDA_SUCCESS);
}

TEST_F(Faults, AnUncorrectedErrorEndsTheContext) {
  const unsigned long long before = ecc(NVML_MEMORY_ERROR_TYPE_UNCORRECTED);
  inject(FaultKind::kEccDouble, 1);
  EXPECT_EQ(event(), Told(nvmlEventTypeDoubleBitEccError, 1));
  EXPECT_EQ(ecc(NVML_MEMORY_ERROR_TYPE_UNCORRECTED), before + 1);
  EXPECT_EQ(allocate(), CUDA_ERROR_ECC_UNCORRECTABLE);
  inject(FaultKind::kNone);
  expect_a_new_context_works();
  EXPECT_EQ(ecc(NVML_MEMORY_ERROR_TYPE_UNCORRECTED), before + 1);  // counters stay
}

TEST_F(Faults, ALinkThatIsDown) {
  const auto state = [&](unsigned link) {
    nvmlEnableState_t active{};
    EXPECT_EQ(NVML(nvmlDeviceGetNvLinkState)(device_, link, &active), NVML_SUCCESS);
    return active;
  };
  EXPECT_EQ(state(2), NVML_FEATURE_ENABLED);
  inject(FaultKind::kLinkDown, 1u << 2);
  EXPECT_EQ(state(2), NVML_FEATURE_DISABLED);
  EXPECT_EQ(state(3), NVML_FEATURE_ENABLED);
  EXPECT_EQ(allocate(), CUDA_SUCCESS);
  inject(FaultKind::kNone);
  EXPECT_EQ(state(2), NVML_FEATURE_ENABLED);
}

TEST_F(Faults, ErrorsOfALink) {
  const auto errors = [&](unsigned link) {
    unsigned long long count = 0;
    EXPECT_EQ(
        NVML(nvmlDeviceGetNvLinkErrorCounter)(device_, link, NVML_NVLINK_ERROR_DL_CRC_FLIT, &count),
        NVML_SUCCESS);
    return count;
  };
  inject(FaultKind::kLinkErrors, *link_errors_from("2:40"));
  inject(FaultKind::kLinkErrors, *link_errors_from("2:2"));
  inject(FaultKind::kLinkErrors, *link_errors_from("7"));
  EXPECT_EQ(errors(2), 42u);
  EXPECT_EQ(errors(0), 7u);
  EXPECT_EQ(allocate(), CUDA_SUCCESS);
  inject(FaultKind::kNone);
  EXPECT_EQ(errors(2), 42u);  // counters stay, until
  EXPECT_EQ(NVML(nvmlDeviceResetNvLinkErrorCounters)(device_, 2), NVML_SUCCESS);
  EXPECT_EQ(errors(2), 0u);
  EXPECT_EQ(errors(0), 7u);
}

TEST_F(Faults, ARowThatWaitsForAResetAndOneThatCannotBeReplaced) {
  struct Rows {
    unsigned corrected, uncorrected, pending, failed;
    bool operator==(const Rows&) const = default;
  };
  const auto rows = [&] {
    Rows out{};
    EXPECT_EQ(NVML(nvmlDeviceGetRemappedRows)(device_, &out.corrected, &out.uncorrected,
                                              &out.pending, &out.failed),
              NVML_SUCCESS);
    return out;
  };
  EXPECT_EQ(rows(), (Rows{0, 0, 0, 0}));
  inject(FaultKind::kRowRemap, static_cast<std::uint64_t>(RowRemap::kPending));
  EXPECT_EQ(rows(), (Rows{0, 1, 1, 0}));
  inject(FaultKind::kRowRemap, static_cast<std::uint64_t>(RowRemap::kFailed));
  EXPECT_EQ(rows(), (Rows{0, 8, 1, 1}));
  EXPECT_EQ(allocate(), CUDA_SUCCESS);
  inject(FaultKind::kNone);
  EXPECT_EQ(rows(), (Rows{0, 8, 0, 0}));  // counters stay
}

TEST_F(Faults, AChipThatIsHot) {
  const auto degrees = [&] {
    unsigned celsius = 0;
    EXPECT_EQ(NVML(nvmlDeviceGetTemperature)(device_, NVML_TEMPERATURE_GPU, &celsius),
              NVML_SUCCESS);
    return celsius;
  };
  const unsigned before = degrees();
  inject(FaultKind::kHeat, 95);
  EXPECT_EQ(degrees(), 95u);
  EXPECT_EQ(allocate(), CUDA_SUCCESS);
  inject(FaultKind::kNone);
  EXPECT_LE(degrees(), before + 30);  // as its use makes it
}

TEST_F(Faults, AnNvmlThatIsLate) {
  const auto asked_for = [&] {
    const auto began = std::chrono::steady_clock::now();
    EXPECT_EQ(temperature(), NVML_SUCCESS);
    return std::chrono::steady_clock::now() - began;
  };
  inject(FaultKind::kNvmlHang, 300);
  EXPECT_GE(asked_for(), std::chrono::milliseconds(300));
  EXPECT_EQ(allocate(), CUDA_SUCCESS);
  inject(FaultKind::kNone);
  auto least = asked_for();
  for (int i = 0; i < 4; ++i) least = std::min(least, asked_for());
  EXPECT_LT(least, std::chrono::milliseconds(300));
}

TEST_F(Faults, TheNthCallOfASymbolFailsOnce) {
  ASSERT_TRUE(fail_call(machine(), "cuMemAlloc_v2:2=2"));
  EXPECT_EQ(allocate(), CUDA_SUCCESS);
  EXPECT_EQ(allocate(), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(allocate(), CUDA_SUCCESS);
  ASSERT_TRUE(fail_call(machine(), "cuMemAlloc_v2"));
  EXPECT_EQ(allocate(), CUDA_ERROR_UNKNOWN);
  EXPECT_EQ(temperature(), NVML_SUCCESS);
  ASSERT_TRUE(fail_call(machine(), "cuMemAlloc_v2:1=719"));
  ASSERT_TRUE(lift_call_faults(machine()));
  EXPECT_EQ(allocate(), CUDA_SUCCESS);
}

TEST_F(Faults, WrongOrdersSayWhatIsWrong) {
  for (const char* words : {"", ":", "1:", ":1", "x", "-1", "1:2:3", "5000000000"})
    EXPECT_EQ(link_errors_from(words), std::nullopt) << words;
  EXPECT_NE(fail_call(machine(), "cuNothing").error().message.find("no such symbol"),
            std::string::npos);
  EXPECT_NE(fail_call(machine(), "cuInit:0").error().message.find("expected SYMBOL"),
            std::string::npos);
  EXPECT_NE(fail_call(machine(), "cuInit:x=1").error().message.find("expected SYMBOL"),
            std::string::npos);
}

TEST_F(Faults, TheDriverLooksItsFunctionsUpThroughDlsym) {
  const auto looked_up = [] {
    void* function = nullptr;
    const int before = driver_lookups;
    EXPECT_EQ(CU(cuGetProcAddress_v2)("cuMemAlloc", &function, 13000, 0, nullptr), CUDA_SUCCESS);
    EXPECT_NE(function, nullptr);
    return std::pair(function, driver_lookups - before);
  };
  const auto [function, none] = looked_up();
  EXPECT_EQ(none, 0);
  ASSERT_TRUE(look_up_through_dlsym(machine(), true));
  EXPECT_EQ(looked_up(), std::pair(function, 1));
  ASSERT_TRUE(lift_call_faults(machine()));
  EXPECT_EQ(looked_up(), std::pair(function, 0));
}

}  // namespace
}  // namespace aliquot::simdriver::test
