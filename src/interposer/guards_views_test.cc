// What a program sees of its share, and what it is told without one.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>

#include "interposer/testing/share.h"

namespace aliquot::interposer {
namespace {

using testing::Share;
constexpr std::uint64_t kMiB = Share::kMiB;
constexpr std::uint64_t kGiB = Share::kGiB;

TEST(View, TotalIsTheLimitAndFreeIsWhatTheLeaseHasLeft) {
  Share share(kGiB);
  ASSERT_NE(share.begin(), nullptr);
  CUdeviceptr address = 0;
  ASSERT_EQ(cuMemAlloc_v2(&address, 100 * kMiB), CUDA_SUCCESS);
  // Another process of the lease.
  ASSERT_EQ(tenant().quota(0).reserve(Share::kSlot + 1, 24 * kMiB), wire::Outcome::kOk);
  size_t free = 0, total = 0;
  ASSERT_EQ(cuMemGetInfo_v2(&free, &total), CUDA_SUCCESS);
  EXPECT_EQ(total, kGiB);
  EXPECT_EQ(free, 900 * kMiB);
  size_t device_total = 0;
  ASSERT_EQ(cuDeviceTotalMem_v2(&device_total, 0), CUDA_SUCCESS);
  EXPECT_EQ(device_total, kGiB);
}

TEST(View, ALimitAboveTheGpuShowsTheGpu) {
  Share share(wire::kUnlimitedBytes);
  ASSERT_NE(share.begin(), nullptr);
  size_t free = 0, total = 0, device_total = 0;
  ASSERT_EQ(cuMemGetInfo_v2(&free, &total), CUDA_SUCCESS);
  ASSERT_EQ(cuDeviceTotalMem_v2(&device_total, 0), CUDA_SUCCESS);
  EXPECT_EQ(total, 40 * kGiB);
  EXPECT_EQ(free, 40 * kGiB);
  EXPECT_EQ(device_total, 40 * kGiB);
}

TEST(View, AnObservedLeaseSeesTheGpuIsRefusedNothingAndCountsWhatItWouldBe) {
  Share share(kGiB);
  ASSERT_NE(share.begin(), nullptr);
  share.lease.grant.enforcement = static_cast<std::uint32_t>(wire::Enforcement::kObserve);
  size_t free = 0, total = 0;
  CUdeviceptr within = 0, beyond = 0;
  ASSERT_EQ(cuMemAlloc_v2(&within, 900 * kMiB), CUDA_SUCCESS);
  ASSERT_EQ(cuMemAlloc_v2(&beyond, 2 * kGiB), CUDA_SUCCESS);
  ASSERT_EQ(cuMemGetInfo_v2(&free, &total), CUDA_SUCCESS);
  EXPECT_EQ(total, 40 * kGiB);
  EXPECT_EQ(free, 1u);  // the driver's own word: the fake one always says so
  const wire::Cell& cell = tenant().ledger().cell(tenant().slot(), 0);
  EXPECT_EQ(cell.would_refuse, 1u);
  EXPECT_EQ(cell.refusals, 0u);
  EXPECT_EQ(tenant().quota(0).used(), 900 * kMiB + 2 * kGiB);
  // Its limit is kept again: what it has it keeps, more is refused.
  share.lease.grant.enforcement = static_cast<std::uint32_t>(wire::Enforcement::kOn);
  CUdeviceptr more = 0;
  EXPECT_EQ(cuMemAlloc_v2(&more, kMiB), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuMemFree_v2(beyond), CUDA_SUCCESS);
  EXPECT_EQ(cuMemAlloc_v2(&more, kMiB), CUDA_SUCCESS);
}

TEST(View, UseAboveALoweredLimitShowsNothingFree) {
  Share share(kGiB);
  ASSERT_NE(share.begin(), nullptr);
  CUdeviceptr address = 0;
  ASSERT_EQ(cuMemAlloc_v2(&address, 800 * kMiB), CUDA_SUCCESS);
  share.lease.grant.gpu[0].memory_limit_bytes = 500 * kMiB;
  size_t free = 1, total = 0;
  ASSERT_EQ(cuMemGetInfo_v2(&free, &total), CUDA_SUCCESS);
  EXPECT_EQ(free, 0u);
  EXPECT_EQ(total, 500 * kMiB);
}

TEST(View, EitherPointerMayBeNullAndErrorsTouchNoOutput) {
  Share share(kGiB);
  ASSERT_NE(share.begin(), nullptr);
  size_t free = 7, total = 7;
  EXPECT_EQ(cuMemGetInfo_v2(nullptr, &total), CUDA_SUCCESS);
  EXPECT_EQ(cuMemGetInfo_v2(&free, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(free, kGiB);
  EXPECT_EQ(cuMemGetInfo_v2(nullptr, nullptr), CUDA_SUCCESS);
  free = total = 7;
  share.fake.fail["cuMemGetInfo_v2"] = CUDA_ERROR_ECC_UNCORRECTABLE;
  EXPECT_EQ(cuMemGetInfo_v2(&free, &total), CUDA_ERROR_ECC_UNCORRECTABLE);
  share.fake.fail["cuDeviceTotalMem_v2"] = CUDA_ERROR_UNKNOWN;
  EXPECT_EQ(cuDeviceTotalMem_v2(&total, 0), CUDA_ERROR_UNKNOWN);
  EXPECT_EQ(free, 7u);
  EXPECT_EQ(total, 7u);
}

TEST(View, OnlyTheLeasedGpusAreCounted) {
  Share share(kGiB, 2);
  ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
  int count = 0;
  ASSERT_EQ(cuDeviceGetCount(&count), CUDA_SUCCESS);
  EXPECT_EQ(count, 2);
  EXPECT_EQ(std::getenv("CUDA_VISIBLE_DEVICES"), nullptr);  // as it was
}

TEST(View, ADriverThatShowsOtherGpusIsRefused) {
  Share share(kGiB, 1);
  {
    const Inside past_us;
    ASSERT_EQ(real::cuInit(0), CUDA_SUCCESS);  // sees all four and stays so
  }
  EXPECT_EQ(cuInit(0), CUDA_ERROR_NO_DEVICE);
}

TEST(View, TheVariableSelectsAmongTheLeasedGpus) {
  const Share share(kGiB, 3);
  const wire::Grant& grant = share.lease.grant;
  const std::string first = grant.gpu[0].uuid_text, second = grant.gpu[1].uuid_text,
                    third = grant.gpu[2].uuid_text;
  const auto selected = [&](const char* wanted) {
    char text[1024];
    select_devices(wanted, grant, text, sizeof text);
    return std::string(text);
  };
  EXPECT_EQ(selected(nullptr), first + "," + second + "," + third);
  EXPECT_EQ(selected("2,0"), third + "," + first);
  EXPECT_EQ(selected(" 1 , 2 "), second + "," + third);
  EXPECT_EQ(selected(second.c_str()), second);
  EXPECT_EQ(selected("GPU-"), "-1");    // names more than one
  EXPECT_EQ(selected("0,3,1"), first);  // ends at the first that is not there
  for (const char* nothing : {"", "-1", "3", "99999999999999999999", "x", "NoDevFiles"})
    EXPECT_EQ(selected(nothing), "-1") << nothing;
}

TEST(Launches, AreCountedOnTheirGpuWhenTheySucceed) {
  Share share(kGiB, 2);
  ASSERT_NE(share.begin(1), nullptr);
  const CUlaunchConfig config{};
  EXPECT_EQ(cuLaunchKernel(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuLaunchKernelEx(&config, nullptr, nullptr, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuLaunchCooperativeKernel(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr),
            CUDA_SUCCESS);
  EXPECT_EQ(cuGraphLaunch(nullptr, nullptr), CUDA_SUCCESS);
  share.fake.fail["cuLaunchKernel"] = CUDA_ERROR_INVALID_HANDLE;
  EXPECT_EQ(cuLaunchKernel(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr),
            CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(share.launches(1), 4u);
  EXPECT_EQ(share.launches(0), 0u);
}

// A share that was refused: every guarded row answers NO_DEVICE and the driver is not asked, which
// is what a row without its guard would do.
class Refused : public ::testing::Test {
 protected:
  Refused() {
    setenv("ALIQUOT_QUIET", "1", 1);
    unsetenv("ALIQUOT_LEASE");
    tenant().leave();
  }
  Share share_{kGiB};
};

template <class... Args>
void call_with_zeros(const char* name, CUresult (*function)(Args...), std::uint64_t asked_before,
                     testing::FakeDriver& fake, CUresult expected) {
  EXPECT_EQ(function(Args{}...), expected) << name;
  EXPECT_EQ(fake.calls[name], asked_before) << name;
}

TEST_F(Refused, EveryGuardedRowAnswersNoDeviceWithoutTheDriver) {
  const auto is_lookup = [](std::string_view name) { return name.starts_with("cuGetProcAddress"); };
#define ALIQUOT_CHECK_kPass(symbol)
#define ALIQUOT_CHECK_kGuard(symbol)                                             \
  if (!is_lookup(#symbol))                                                       \
    call_with_zeros(#symbol, &::symbol, share_.fake.calls[#symbol], share_.fake, \
                    CUDA_ERROR_NO_DEVICE);
#define ALIQUOT_CHECK_kDeny(symbol)                                            \
  call_with_zeros(#symbol, &::symbol, share_.fake.calls[#symbol], share_.fake, \
                  CUDA_ERROR_NOT_SUPPORTED);
#define ALIQUOT_ENTRY(symbol, base, since, until, kind, params, args) ALIQUOT_CHECK_##kind(symbol)
#include "driver_abi/cuda_entry_points.def"
}

TEST_F(Refused, LookUpsStillFindOurFunctionsByNameVersionAndStreams) {
  void* found = nullptr;
  int status = -1;
  EXPECT_EQ(cuGetProcAddress_v2("cuInit", &found, 13000, 0, &status), CUDA_SUCCESS);
  EXPECT_EQ(found, hook_of(driver_abi::Cuda::cuInit));
  EXPECT_EQ(status, CU_GET_PROC_ADDRESS_SUCCESS);
  EXPECT_EQ(cuGetProcAddress("cuMemAllocAsync", &found, 12000, 2), CUDA_SUCCESS);
  EXPECT_EQ(found, hook_of(driver_abi::Cuda::cuMemAllocAsync_ptsz));
  EXPECT_EQ(cuGetProcAddress_v2("cuMemCreate", &found, 2000, 0, &status), CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
  EXPECT_EQ(cuGetProcAddress_v2("", &found, 0, 0, &status), CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(cuGetProcAddress_v2(nullptr, &found, 0, 0, &status), CUDA_ERROR_INVALID_VALUE);
}

TEST(LookUps, OfItselfAndOfOddNames) {
  Share share(kGiB);
  void* found = nullptr;
  int status = -1;
  // Before cuInit, as the first call of all.
  EXPECT_NE(cuGetProcAddress_v2("", &found, 0, 0, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuGetProcAddress_v2("cuGetProcAddress", &found, 12000, 0, &status), CUDA_SUCCESS);
  EXPECT_EQ(found, hook_of(driver_abi::Cuda::cuGetProcAddress_v2));
  EXPECT_EQ(cuGetProcAddress_v2("cuGetProcAddress", &found, 11030, 0, &status), CUDA_SUCCESS);
  EXPECT_EQ(found, hook_of(driver_abi::Cuda::cuGetProcAddress));
  EXPECT_EQ(cuGetProcAddress_v2("cuNoSuchFunction", &found, 12000, 0, &status),
            CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  EXPECT_EQ(found, nullptr);
}

TEST(LookUps, OfADriverThatIsOldFindOnlyWhatItHas) {
  Share share(kGiB);
  share.fake.version = 12000;
  void* found = nullptr;
  EXPECT_EQ(cuGetProcAddress_v2("cuMemGetMemPool", &found, 13000, 0, nullptr),
            CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(cuGetProcAddress_v2("cuCtxCreate", &found, 13000, 0, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(found, hook_of(driver_abi::Cuda::cuCtxCreate_v3));
}

TEST(LookUps, OfANameThatTheDriverLacksAnswerNotFoundWhenCalled) {
  Share share(kGiB);
  ASSERT_NE(share.begin(), nullptr);
  EXPECT_EQ(cuLaunchHostFunc_v2(nullptr, nullptr, nullptr, 0), CUDA_ERROR_NOT_FOUND);
}

// The driver's own calls come back through our exports; the outer call has charged.
TEST(Reentry, CallsFromInsideACallGoStraightThrough) {
  Share share(kGiB);
  ASSERT_NE(share.begin(), nullptr);
  CUdeviceptr address = 0;
  {
    const Inside a_call_of_ours;
    EXPECT_EQ(cuMemAlloc_v2(&address, kMiB), CUDA_SUCCESS);
  }
  EXPECT_EQ(share.used(), 0u);
}

// Its words lie in a page that the kernel wipes; a lease it cannot reach refuses it here.
TEST(Fork, TheChildIsUnattachedAndHoldsNothing) {
  Share share(kGiB);
  ASSERT_NE(share.begin(), nullptr);
  CUdeviceptr address = 0;
  ASSERT_EQ(cuMemAlloc_v2(&address, kMiB), CUDA_SUCCESS);
  setenv("ALIQUOT_QUIET", "1", 1);
  const pid_t child = fork();
  if (child == 0) {
    const bool refused = cuMemAlloc_v2(&address, kMiB) == CUDA_ERROR_NO_DEVICE;
    _exit(refused ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(share.used(), kMiB);
  EXPECT_EQ(cuMemFree_v2(address), CUDA_SUCCESS);
  EXPECT_EQ(share.used(), 0u);
}

}  // namespace
}  // namespace aliquot::interposer
