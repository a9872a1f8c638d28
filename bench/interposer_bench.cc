// What the interposer adds to a call, side by side with the direct call, in nanoseconds: a call
// that is passed on, a launch through an open gate without a competitor (with the events that each
// millisecond of work takes, and the system calls of 200,000 of them: one where the thread that
// looks at the events sleeps for longer than a millisecond), and cuMemAlloc with cuMemFree; and of
// that what account and table take, and of that the two swaps of 128 bits that the account's
// protocol needs: what they take is the processor's affair. The driver behind it does nothing.
// Prints one JSON object; best of the rounds.
//   interposer_bench                 all figures
//   interposer_bench count WHAT N    for an instruction counter: N times and nothing else. WHAT:
//                                    account (of a pair), or pass, pair, launch, each of them also
//                                    as pass_direct and so on
#include <dlfcn.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>

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

volatile std::sig_atomic_t trapped = 0;

// Every call of the calling thread is trapped and fails from now on, but for its end.
void trap_system_calls() {
  struct sigaction action{};
  action.sa_flags = SA_SIGINFO;
  action.sa_sigaction = [](int, siginfo_t*, void* context) {
    trapped = trapped + 1;
    static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RAX] = -ENOSYS;
  };
  sigaction(SIGSYS, &action, nullptr);
  sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigreturn, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
  };
  sock_fprog program{std::size(rules), rules};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
    std::abort();
}

// System calls of as many launches as a round has.
template <class Call>
int system_calls(Call call) {
  int made = 0;
  std::thread thread([&] {
    call();
    trap_system_calls();
    trapped = 0;
    for (int i = 0; i < kCalls; ++i) call();
    made = trapped;
  });
  thread.join();
  return made;
}

// What two swaps take that each find what the one before left.
double swaps_ns() {
  wire::Pair pair{};
  return best_ns([&] {
    for (int i = 0; i < 2; ++i) {
      const wire::Pair seen = wire::load_halves(pair);
      if (!wire::compare_and_swap(pair, seen, {seen.lo + 1, seen.hi})) std::abort();
    }
  });
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

template <class Allocate, class Release>
void pair_with(Allocate allocate, Release release) {
  CUdeviceptr address = 0;
  allocate(&address, kBytes);
  release(address);
}

template <class Pass>
void pass_with(Pass flags_of) {
  unsigned flags = 0;
  flags_of(&flags);
}

struct Driver {
  decltype(&cuCtxGetFlags) flags_of;
  decltype(&cuMemAlloc_v2) allocate;
  decltype(&cuMemFree_v2) release;
  decltype(&cuLaunchKernel) launch;
};

Driver driver_behind() {
  void* driver = dlopen(ALIQUOT_NULL_DRIVER, RTLD_NOW | RTLD_LOCAL);
  if (driver == nullptr || cuInit(0) != CUDA_SUCCESS) {
    std::fprintf(stderr, "interposer_bench: no driver at %s\n", ALIQUOT_NULL_DRIVER);
    std::exit(1);
  }
  return {direct<decltype(&cuCtxGetFlags)>(driver, "cuCtxGetFlags"),
          direct<decltype(&cuMemAlloc_v2)>(driver, "cuMemAlloc_v2"),
          direct<decltype(&cuMemFree_v2)>(driver, "cuMemFree_v2"),
          direct<decltype(&cuLaunchKernel)>(driver, "cuLaunchKernel")};
}

int measure() {
  const Driver driver = driver_behind();
  const double pass_direct = best_ns([&] { pass_with(driver.flags_of); });
  const double pass = best_ns([&] { pass_with(cuCtxGetFlags); });
  const double pair_direct = best_ns([&] { pair_with(driver.allocate, driver.release); });
  const double pair = best_ns([&] { pair_with(cuMemAlloc_v2, cuMemFree_v2); });
  const double launch_direct = best_ns([&] { launch_with(driver.launch); });
  const double launched = best_ns([&] { launch_with(cuLaunchKernel); });
  const int calls = system_calls([] { launch_with(cuLaunchKernel); });
  const double account = best_ns([&] { account_pair(0x7f0000000000); });
  std::printf(
      "{\"bench\": \"interposer\", \"pass_direct_ns\": %.1f, \"pass_ns\": %.1f, "
      "\"pass_more_ns\": %.1f, \"pair_direct_ns\": %.1f, \"pair_ns\": %.1f, "
      "\"pair_more_ns\": %.1f, \"launch_direct_ns\": %.1f, \"launch_ns\": %.1f, "
      "\"launch_more_ns\": %.1f, \"launch_system_calls\": %d, \"account_pair_ns\": %.1f, "
      "\"account_swaps_ns\": %.1f}\n",
      pass_direct, pass, pass - pass_direct, pair_direct, pair, pair - pair_direct, launch_direct,
      launched, launched - launch_direct, calls, account, swaps_ns());
  stop_watches();
  return 0;
}

int count(const std::string_view what, long times) {
  const auto repeat = [times](auto&& call) {
    for (long i = 0; i < times; ++i) call(i);
    return 0;
  };
  if (what == "account")
    return repeat(
        [](long i) { account_pair(0x7f0000000000 + 512 * static_cast<std::uint64_t>(i & 1023)); });
  const Driver driver = driver_behind();
  if (what == "pass") return repeat([](long) { pass_with(cuCtxGetFlags); });
  if (what == "pass_direct") return repeat([&](long) { pass_with(driver.flags_of); });
  if (what == "pair") return repeat([](long) { pair_with(cuMemAlloc_v2, cuMemFree_v2); });
  if (what == "pair_direct")
    return repeat([&](long) { pair_with(driver.allocate, driver.release); });
  if (what == "launch") return repeat([](long) { launch_with(cuLaunchKernel); });
  if (what == "launch_direct") return repeat([&](long) { launch_with(driver.launch); });
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  wire::QuotaFixture lease(1ull << 30);
  stand_on(lease);
  if (argc == 4 && std::strcmp(argv[1], "count") == 0)
    return count(argv[2], std::strtol(argv[3], nullptr, 10));
  return measure();
}
