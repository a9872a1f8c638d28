#include "wire/quota_step.h"

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <string>

#include "wire/quota_fixture.h"

namespace aliquot::wire {
namespace {

constexpr unsigned kVictim = 7, kOther = 3;
constexpr std::uint64_t kLimit = 1000003, kOthers = 111;

// A child that stops before `body` and says in `ended`, which it shares with its tracer, that it is
// past it. A breakpoint rather than a signal: there is no libc to step through.
template <class Body>
pid_t stopped_child(std::atomic<bool>& ended, Body body) {
  ended = false;
  const pid_t pid = fork();
  if (pid == 0) {
    ptrace(PTRACE_TRACEME, 0, 0, 0);
    __asm__ volatile("int3");
    body();
    ended.store(true, std::memory_order_relaxed);
    for (;;) __asm__ volatile("pause");
  }
  int status = 0;
  waitpid(pid, &status, 0);
  return pid;
}

// Steps and kills. False: the body ended before its k-th instruction.
bool step_and_kill(pid_t pid, const std::atomic<bool>& ended, unsigned instructions) {
  int status = 0;
  for (unsigned i = 0; i < instructions && !ended; ++i) {
    ptrace(PTRACE_SINGLESTEP, pid, 0, 0);
    waitpid(pid, &status, 0);
  }
  const bool was_within = !ended;
  kill(pid, SIGKILL);
  waitpid(pid, &status, 0);
  return was_within;
}

template <class Faults>
class Stepper {
 public:
  explicit Stepper(unsigned stride) : stride_(stride), fixture_(kLimit) {}

  StepReport run() {
    bool tenant_ended = false;
    for (unsigned k = 0; !tenant_ended; k += stride_) {
      bool is_new = true, broker_ended = false;
      for (unsigned m = 0; is_new && !broker_ended; m += stride_) {
        tenant_ = k, broker_ = m;
        tenant_ended = kill_tenant(k);
        if (m == 0) is_new = remember_state();
        const std::uint64_t held = check_after_tenant();
        if (m / stride_ % 2 == 1) check_survivor(held);
        broker_ended = kill_broker(m);
        check_after_broker();
        ++report_.runs;
      }
      if (report_.violations > 1000) break;  // a planted fault was found often enough
    }
    return report_;
  }

 private:
  using StepQuota = BasicQuota<Faults>;
  StepQuota quota() { return {fixture_.view, fixture_.grant, 0}; }

  void expect(bool good, const char* what) {
    if (good || report_.violations++ != 0) return;
    report_.first_violation = std::string(what) + " at tenant instruction " +
                              std::to_string(tenant_) + ", broker instruction " +
                              std::to_string(broker_);
  }

  // Another process holds something and was the last to write; then the victim works and dies.
  bool kill_tenant(unsigned k) {
    quota().reserve(kOther, kOthers);
    const pid_t victim = stopped_child(*ended_, [this] {
      const StepQuota mine = quota();
      mine.reserve(kVictim, 500);
      mine.count(kVictim, Kind::kVmm, 500);
      mine.release(kVictim, 200);
      mine.count(kVictim, Kind::kVmm, -200);
      mine.reserve(kVictim, 70000);
    });
    if (step_and_kill(victim, *ended_, k)) return false;
    report_.tenant_instructions = k;
    return true;
  }

  // False: an earlier instruction left the same, so the broker has been stepped over it already.
  bool remember_state() {
    const Head head = Head::unpack(fixture_.view.gpu(0).head);
    const bool open = is_unsettled();
    const Pair state{head.used << 10 | head.slot,
                     quota().held_bytes(kVictim) << 1 | (open ? 1 : 0)};
    report_.unsettled += open ? 1 : 0;
    const bool is_new = !(state == last_);
    last_ = state;
    return is_new;
  }
  bool is_unsettled() {
    const Head head = Head::unpack(fixture_.view.gpu(0).head);
    const Pair& mirror = fixture_.view.cell(static_cast<unsigned>(head.slot), 0).mirror;
    return (mirror.hi & kSequenceMask) != head.sequence;
  }

  std::uint64_t check_after_tenant() {
    const std::uint64_t held = quota().held_bytes(kVictim);
    expect(held == 0 || held == 500 || held == 300 || held == 70300,
           "the dead hold a wrong amount");
    report_.outcomes |= held == 0 ? 1u : held == 500 ? 2u : held == 300 ? 4u : 8u;
    expect(quota().used() == kOthers + held, "used is not the sum");
    return held;
  }
  // Exactly what is left, and not a byte more.
  void check_survivor(std::uint64_t held) {
    const std::uint64_t rest = kLimit - kOthers - held;
    expect(quota().reserve(kOther, rest + 1) == Outcome::kRefused, "a byte too much was granted");
    expect(quota().reserve(kOther, rest) == Outcome::kOk, "what is left was refused");
    expect(quota().used() == kLimit, "not full");
    quota().release(kOther, rest);
    expect(quota().held_bytes(kVictim) == held, "a survivor changed the dead one's bytes");
  }

  bool kill_broker(unsigned m) {
    const pid_t broker = stopped_child(*ended_, [this] {
      quota().reclaim(kVictim);
      quota().bump();
    });
    if (step_and_kill(broker, *ended_, m)) return false;
    report_.broker_instructions = m;
    return true;
  }
  void check_after_broker() {
    expect(quota().reclaim(kVictim) == Outcome::kOk, "reclaim");
    quota().bump();
    quota().reclaim(kVictim);
    expect(quota().held_bytes(kVictim) == 0 && quota().used() == kOthers,
           "not subtracted exactly once");
    quota().release(kOther, kOthers);
    expect(quota().used() == 0 && quota().audit() == Outcome::kOk, "not zero");
    if (quota().used() != 0 || quota().held_bytes(kOther) != 0) fixture_.clear();
  }

  unsigned stride_;
  QuotaFixture fixture_;
  // In the children's shared memory: a word of the ledger that nobody else uses.
  std::atomic<bool>* ended_ = new (&fixture_.view.header().reserved1[0]) std::atomic<bool>;
  StepReport report_;
  Pair last_{~0ull, ~0ull};
  unsigned tenant_ = 0, broker_ = 0;
};

struct NoHelp : NoFaults {
  static constexpr bool kSkipsHelp = true;
};
struct UnsettledReclaim : NoFaults {
  static constexpr bool kReclaimsUnsettled = true;
};

}  // namespace

StepReport kill_everywhere(unsigned stride) { return Stepper<NoFaults>(stride).run(); }

StepReport kill_everywhere_without_help(unsigned stride) { return Stepper<NoHelp>(stride).run(); }

StepReport kill_everywhere_reclaiming_unsettled(unsigned stride) {
  return Stepper<UnsettledReclaim>(stride).run();
}

}  // namespace aliquot::wire
