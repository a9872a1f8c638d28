// What the interposer adds to a call, side by side with the direct call, in nanoseconds: a call
// that is passed on, a launch through an open gate without a competitor (with the events that each
// millisecond of work takes), and cuMemAlloc with cuMemFree; and of that what account and table
// take. The driver behind it does nothing. Prints one JSON object; best of the rounds.
//   interposer_bench                 all figures
//   interposer_bench count N         N pairs of account and table only, for an instruction counter
//   interposer_bench count_launch N  N launches through the open gate
//   interposer_bench count_direct N  N launches past it
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "gate/shared_words.h"
#include "interposer/gate.h"
#include "interposer/holdings.h"
#include "interposer/real_driver.h"
#include "wire/quota_fixture.h"

extern "C" {
CUresult cuInit(unsigned int flags);
CUresult cuCtxGetFlags(unsigned int* flags);
CUresult cuMemAlloc_v2(CUdeviceptr* address, size_t bytes);
CUresult cuMemFree_v2(CUdeviceptr address);
CUresult cuLaunchKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                        unsigned, CUstream, void**, void**);
}

namespace {

using namespace aliquot;
using namespace aliquot::interposer;

constexpr int kRounds = 15;
constexpr int kCalls = 200'000;
constexpr std::uint64_t kBytes = 1u << 20;

template <class Call>
double best_ns(Call call) {
  double best = 1e9;
  for (int round = 0; round < kRounds; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < kCalls; ++i) call();
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
    best = std::min(best, took.count() / kCalls);
  }
  return best;
}

void stand_on(wire::QuotaFixture& lease) {
  wire::Grant& grant = lease.grant;
  grant.gpu_count = 1;
  grant.slot_count = lease.view.slots();
  std::strcpy(grant.real_libcuda, ALIQUOT_NULL_DRIVER);
  std::strcpy(grant.gpu[0].uuid_text, "GPU-00000000-0000-0000-0000-000000000000");
  wire::Attachment attachment;
  attachment.slot = 1;
  attachment.grant = &grant;
  attachment.ledger = lease.view;
  tenant().adopt(attachment);
  gate::publish({.open = true, .number = 1, .opened_at = 1}, grant.gpu[0].window,
                grant.gpu[0].gate);
}

template <class Launch>
void launch_with(Launch launch) {
  launch(nullptr, 8, 1, 1, 128, 1, 1, 0, nullptr, nullptr, nullptr);
}

// What an allocation and its free cost apart from the driver's calls.
[[gnu::always_inline]] inline void account_pair(std::uint64_t address) {
  Reservation reservation(0, wire::Kind::kLinear, kBytes);
  if (!keep(held_pointers(), reservation, address, 1)) std::abort();
  let_go(held_pointers().take(address));
}

template <class Function>
Function direct(void* driver, const char* name) {
  return reinterpret_cast<Function>(dlsym(driver, name));
}

int measure() {
  void* driver = dlopen(ALIQUOT_NULL_DRIVER, RTLD_NOW | RTLD_LOCAL);
  if (driver == nullptr || cuInit(0) != CUDA_SUCCESS) {
    std::fprintf(stderr, "interposer_bench: no driver at %s\n", ALIQUOT_NULL_DRIVER);
    return 1;
  }
  const auto flags_of = direct<decltype(&cuCtxGetFlags)>(driver, "cuCtxGetFlags");
  const auto allocate = direct<decltype(&cuMemAlloc_v2)>(driver, "cuMemAlloc_v2");
  const auto release = direct<decltype(&cuMemFree_v2)>(driver, "cuMemFree_v2");
  unsigned flags = 0;
  CUdeviceptr address = 0;
  const double pass_direct = best_ns([&] { flags_of(&flags); });
  const double pass = best_ns([&] { cuCtxGetFlags(&flags); });
  const double pair_direct = best_ns([&] {
    allocate(&address, kBytes);
    release(address);
  });
  const double pair = best_ns([&] {
    cuMemAlloc_v2(&address, kBytes);
    cuMemFree_v2(address);
  });
  const auto launch = direct<decltype(&cuLaunchKernel)>(driver, "cuLaunchKernel");
  const double launch_direct = best_ns([&] { launch_with(launch); });
  const double launched = best_ns([&] { launch_with(cuLaunchKernel); });
  const double account = best_ns([&] { account_pair(address); });
  std::printf(
      "{\"bench\": \"interposer\", \"pass_direct_ns\": %.1f, \"pass_ns\": %.1f, "
      "\"pass_more_ns\": %.1f, \"pair_direct_ns\": %.1f, \"pair_ns\": %.1f, "
      "\"pair_more_ns\": %.1f, \"launch_direct_ns\": %.1f, \"launch_ns\": %.1f, "
      "\"launch_more_ns\": %.1f, \"account_pair_ns\": %.1f}\n",
      pass_direct, pass, pass - pass_direct, pair_direct, pair, pair - pair_direct, launch_direct,
      launched, launched - launch_direct, account);
  stop_watches();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  wire::QuotaFixture lease(1ull << 30);
  stand_on(lease);
  if (argc == 3 && std::strcmp(argv[1], "count") == 0) {
    const long pairs = std::strtol(argv[2], nullptr, 10);
    for (long i = 0; i < pairs; ++i) account_pair(0x7f0000000000 + 512 * (i & 1023));
    return 0;
  }
  if (argc == 3 && std::strncmp(argv[1], "count_", 6) == 0) {
    const long launches = std::strtol(argv[2], nullptr, 10);
    void* driver = dlopen(ALIQUOT_NULL_DRIVER, RTLD_NOW | RTLD_LOCAL);
    if (driver == nullptr || cuInit(0) != CUDA_SUCCESS) return 1;
    const auto launch = std::strcmp(argv[1], "count_direct") == 0
                            ? direct<decltype(&cuLaunchKernel)>(driver, "cuLaunchKernel")
                            : &cuLaunchKernel;
    for (long i = 0; i < launches; ++i) launch_with(launch);
    return 0;
  }
  return measure();
}
