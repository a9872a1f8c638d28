// Attach as tenants live it: fork, exec, daemons, closed descriptors, strangers. Every test runs on
// both ways to know a process.
#include <sched.h>
#include <sys/mount.h>
#include <sys/syscall.h>

#include "broker/broker_fixture.h"

namespace aliquot::broker {
namespace {

using wire::AttachResult;
using wire::Outcome;

// Set for the image that a test execs: attach to this directory, write the slot to descriptor 1.
constexpr const char* kHelper = "ALIQUOT_TEST_ATTACH_AFTER_EXEC";

TEST(Helper, AttachesAfterExec) {
  const char* directory = std::getenv(kHelper);
  if (directory == nullptr) GTEST_SKIP() << "runs only as the image of another test";
  const wire::Attachment a = attach_or_exit(directory);
  _exit(quota_of(a).held_bytes(static_cast<unsigned>(a.slot)) == 0 ? a.slot : 98);
}

class Attach : public BrokerFixture, public testing::WithParamInterface<IdentityPath> {
 protected:
  Attach() : BrokerFixture(GetParam()) { prctl(PR_SET_CHILD_SUBREAPER, 1); }

  std::uint64_t used(const std::string& name) {
    return client().get_lease(name)->gpus[0].used_bytes;
  }
  std::uint64_t execs(const std::string& name) { return files(name).table().execs; }
};

INSTANTIATE_TEST_SUITE_P(, Attach,
                         testing::Values(IdentityPath::kPidfs, IdentityPath::kCredentials),
                         identity_name);

TEST_P(Attach, TwoAttachesOfOneImageShareASlotAndItsBytes) {
  const auto granted = lease("a", 1000);
  Child child([&] {
    const auto first = attach_or_exit(granted.directory);
    quota_of(first).reserve(static_cast<unsigned>(first.slot), 600);
    const auto second = attach_or_exit(granted.directory);
    return first.slot == second.slot &&
                   quota_of(second).held_bytes(static_cast<unsigned>(second.slot)) == 600
               ? 0
               : 1;
  });
  EXPECT_EQ(child.wait(), 0);
}

TEST_P(Attach, WhatAKilledProcessHeldIsSubtracted) {
  const auto granted = lease("a", 1000);
  Child child = holder(granted.directory, 600);
  EXPECT_EQ(used("a"), 600u);
  child.kill_now();
  EXPECT_TRUE(eventually([&] { return used("a") == 0; }, 1000));
  EXPECT_TRUE(client().get_lease("a")->rows.empty());
}

TEST_P(Attach, AForkedChildAttachesAnew) {
  const auto granted = lease("a", 1000);
  Child child([&] {
    wire::Attachment parents = attach_or_exit(granted.directory);
    quota_of(parents).reserve(static_cast<unsigned>(parents.slot), 100);
    Child grandchild([&] {
      wire::forget(parents);
      const auto own = attach_or_exit(granted.directory);
      return quota_of(own).held_bytes(static_cast<unsigned>(own.slot)) == 0 ? own.slot : 77;
    });
    const int slot = grandchild.wait();
    return slot != 77 && slot != parents.slot &&
                   quota_of(parents).held_bytes(static_cast<unsigned>(parents.slot)) == 100
               ? 0
               : 1;
  });
  EXPECT_EQ(child.wait(), 0);
}

TEST_P(Attach, ExecSubtractsTheOldImageWhenTheNewOneAttaches) {
  const auto granted = lease("a", 1000);
  Child child([&] {
    const auto a = attach_or_exit(granted.directory);
    quota_of(a).reserve(static_cast<unsigned>(a.slot), 600);
    setenv(kHelper, granted.directory.c_str(), 1);
    execl("/proc/self/exe", "attach_test", "--gtest_filter=Helper.*", nullptr);
    return 97;
  });
  EXPECT_EQ(child.wait(), 0);  // slot 0 again, with nothing in it
  EXPECT_EQ(execs("a"), 1u);
}

TEST_P(Attach, ExecIntoAProgramThatNeverAttachesIsGoneWithinASecond) {
  const auto granted = lease("a", 1000);
  Child child([&] {
    const auto a = attach_or_exit(granted.directory);
    quota_of(a).reserve(static_cast<unsigned>(a.slot), 600);
    execl("/bin/sleep", "sleep", "30", nullptr);
    return 97;
  });
  ASSERT_TRUE(eventually([&] { return files("a").table().attaches == 1; }));
  EXPECT_TRUE(eventually([&] { return used("a") == 0; }, 1000));
  EXPECT_EQ(kill(child.pid(), 0), 0);
}

TEST_P(Attach, ExecIsNoticedEvenWhenAChildHoldsTheConnection) {
  const auto granted = lease("a", 1000);
  Shared<std::atomic<int>> reserved;
  Child child([&] {
    const auto a = attach_or_exit(granted.directory);
    quota_of(a).reserve(static_cast<unsigned>(a.slot), 600);
    *reserved = 1;
    if (fork() == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      pause();
    }
    usleep(50'000);
    execl("/bin/sleep", "sleep", "30", nullptr);
    return 97;
  });
  ASSERT_TRUE(eventually([&] { return *reserved == 1; }));
  EXPECT_TRUE(eventually([&] { return used("a") == 0; }, 1050));
}

TEST_P(Attach, AProcessThatClosesAllItsDescriptorsStaysCharged) {
  const auto granted = lease("a", 1000);
  Shared<std::atomic<int>> step;
  Child child([&] {
    const auto a = attach_or_exit(granted.directory);
    quota_of(a).reserve(static_cast<unsigned>(a.slot), 600);
    syscall(SYS_close_range, 3, ~0u, 0);
    *step = 1;
    pause();
    return 0;
  });
  ASSERT_TRUE(eventually([&] { return *step == 1; }));
  usleep(900'000);  // longer than it takes to notice an exec
  EXPECT_EQ(used("a"), 600u);
  kill_broker();
  start_broker();
  EXPECT_EQ(used("a"), 600u);
  child.kill_now();
  EXPECT_TRUE(eventually([&] { return used("a") == 0; }, 1000));
}

TEST_P(Attach, ADaemonIsChargedForItselfWhenItsParentsHaveGone) {
  const auto granted = lease("a", 1000);
  Shared<std::atomic<pid_t>> daemon;
  Child parent([&] {
    const auto a = attach_or_exit(granted.directory);
    quota_of(a).reserve(static_cast<unsigned>(a.slot), 100);
    if (fork() == 0) {
      setsid();
      if (fork() != 0) _exit(0);
      usleep(50'000);
      const auto own = attach_or_exit(granted.directory);
      quota_of(own).reserve(static_cast<unsigned>(own.slot), 7);
      *daemon = getpid();
      pause();
    }
    return 0;
  });
  EXPECT_EQ(parent.wait(), 0);
  ASSERT_TRUE(eventually([&] { return *daemon != 0; }));
  EXPECT_TRUE(eventually([&] { return used("a") == 7; }, 1000));
  kill(*daemon, SIGKILL);
  EXPECT_TRUE(eventually([&] { return used("a") == 0; }, 1000));
  waitpid(*daemon, nullptr, 0);
}

// A raw clone in the parent's memory: nothing in memory tells it apart from the parent.
int write_after_parents_death(void* argument) {
  const auto& a = *static_cast<wire::Attachment*>(argument);
  // Until the broker has emptied the slot of the dead parent.
  while (a.ledger.cell(static_cast<unsigned>(a.slot), 0).broker_pid != 0) usleep(1000);
  usleep(50'000);
  quota_of(a).reserve(static_cast<unsigned>(a.slot), 55);
  for (;;) pause();
}

TEST_P(Attach, BytesOfACloneThatOutlivesItsProcessAreTakenBack) {
  const auto granted = lease("a", 1000);
  Shared<std::atomic<pid_t>> clone_pid;
  static char stack[64 << 10];
  Child child([&] {
    prctl(PR_SET_CHILD_SUBREAPER, 0);
    auto a = attach_or_exit(granted.directory);
    *clone_pid = clone(write_after_parents_death, stack + sizeof stack, CLONE_VM | SIGCHLD, &a);
    pause();
    return 0;
  });
  ASSERT_TRUE(eventually([&] { return *clone_pid > 0; }));
  child.kill_now();
  EXPECT_TRUE(eventually([&] { return files("a").table().orphans > 0; }, 3000));
  EXPECT_TRUE(eventually([&] { return used("a") == 0; }, 1000));
  kill(*clone_pid, SIGKILL);
  waitpid(*clone_pid, nullptr, 0);
}

TEST_P(Attach, AStrangerIsRefusedWithTheReason) {
  Child runner([&] {
    lease("theirs", 1000);
    pause();
    return 0;
  });
  ASSERT_TRUE(eventually([&] { return client().get_lease("theirs").has_value(); }));
  wire::Attachment a;
  char reason[256];
  const std::string directory = client().get_lease("theirs")->directory;
  EXPECT_EQ(wire::attach(directory.c_str(), 1000, a, reason, sizeof reason),
            AttachResult::kRefused);
  EXPECT_NE(std::string(reason).find("is not of lease theirs's run"), std::string::npos) << reason;
}

// Process 1 of a pid namespace of its own, known outside by another number.
TEST_P(Attach, AProcessInAPidNamespaceOfTheRunIsCountedAndSubtracted) {
  const auto granted = lease("a", 1000);
  for (const bool taken_over : {false, true}) {
    Shared<std::atomic<int>> step;
    Shared<std::atomic<pid_t>> number;
    Child child([&] {
      if (unshare(CLONE_NEWPID) != 0) return *step = 50;
      Child inner([&] {
        const auto a = attach_or_exit(granted.directory);
        const bool held = quota_of(a).reserve(static_cast<unsigned>(a.slot), 600) == Outcome::kOk;
        *step = held && getpid() == 1 ? 1 : 2;
        pause();
        return 0;
      });
      *number = inner.pid();
      inner.wait();
      pause();
      return 0;
    });
    ASSERT_TRUE(eventually([&] { return *step != 0; }));
    if (*step == 50) GTEST_SKIP() << "no pid namespace here";
    ASSERT_EQ(*step, 1);
    if (taken_over) {
      kill_broker();
      start_broker();
    }
    EXPECT_EQ(used("a"), 600u);
    ASSERT_TRUE(eventually([&] { return *number != 0; }));
    kill(*number, SIGKILL);
    EXPECT_TRUE(eventually([&] { return used("a") == 0; }, 1000)) << "taken over: " << taken_over;
  }
}

TEST_P(Attach, AnOrphanInANamespaceOfTheRunStillBelongs) {
  Shared<std::atomic<int>> result;
  *result = -1;
  Child runner([&] {
    prctl(PR_SET_CHILD_SUBREAPER, 0);
    const auto granted = lease("a", 1000);
    if (fork() == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (unshare(CLONE_NEWNS) != 0) *result = 50;
      attach_or_exit(granted.directory);  // the namespace is known from here on
      if (fork() == 0) {
        setsid();
        if (fork() != 0) _exit(0);
        while (getppid() != 1 && kill(getppid(), 0) == 0 && *result == -1) {
          usleep(100'000);
          wire::Attachment a;
          if (wire::attach(granted.directory.c_str(), 1000, a, nullptr, 0) ==
              AttachResult::kAttached)
            *result = 0;
        }
        wire::Attachment a;
        *result =
            wire::attach(granted.directory.c_str(), 1000, a, nullptr, 0) == AttachResult::kAttached
                ? 0
                : 1;
        _exit(0);
      }
      pause();
    }
    pause();
    return 0;
  });
  ASSERT_TRUE(eventually([&] { return *result != -1; }));
  if (*result == 50) GTEST_SKIP() << "no mount namespace here";
  EXPECT_EQ(*result, 0);
}

TEST_P(Attach, WhenAllSlotsAreTakenTheNextIsToldAndADeathMakesRoom) {
  const auto granted = lease("a", 1000, 2);
  Child first = holder(granted.directory, 1), second = holder(granted.directory, 1);
  const auto third = [&] {
    return Child([&] {
             wire::Attachment a;
             char reason[256] = "";
             const auto result =
                 wire::attach(granted.directory.c_str(), 1000, a, reason, sizeof reason);
             if (result == AttachResult::kAttached) return 0;
             return std::string(reason).find("all 2 process slots") != std::string::npos ? 1 : 2;
           })
        .wait();
  };
  EXPECT_EQ(third(), 1);
  first.kill_now();
  EXPECT_EQ(third(), 0);
}

TEST_P(Attach, NothingIsRefusedFalselyBecauseOfTheDead) {
  const auto granted = lease("a", 1000);
  const auto me = attach_or_exit(granted.directory);
  const auto slot = static_cast<unsigned>(me.slot);
  for (int i = 0; i < 50; ++i) {
    Child other = holder(granted.directory, 1000);
    kill(other.pid(), SIGKILL);
    siginfo_t info;
    waitid(P_PID, static_cast<id_t>(other.pid()), &info, WEXITED | WNOWAIT);
    if (quota_of(me).reserve(slot, 1000) != Outcome::kOk) {
      ASSERT_TRUE(wire::settle(granted.directory.c_str(), 1000));
      ASSERT_EQ(quota_of(me).reserve(slot, 1000), Outcome::kOk) << "round " << i;
    }
    quota_of(me).release(slot, 1000);
  }
}

TEST_P(Attach, TheGrantCannotBeWrittenThroughWhatTheTenantGets) {
  const auto granted = lease("a", 1000);
  if (!granted.guarded) GTEST_SKIP() << "no detached read-only mounts here";
  Child child([&] {
    const auto a = attach_or_exit(granted.directory);
    void* page = const_cast<wire::Grant*>(a.grant);
    if (mprotect(page, 4096, PROT_READ | PROT_WRITE) == 0) return 1;
    const auto at = reinterpret_cast<std::uintptr_t>(page);
    char map[64];
    snprintf(map, sizeof map, "/proc/self/map_files/%lx-%lx", at, at + 8192);
    if (open(map, O_RDWR) >= 0 || errno == ENOENT) return 2;
    const int memory = open("/proc/self/mem", O_RDWR);
    const std::uint64_t more = ~0ull;
    if (pwrite(memory, &more, sizeof more, static_cast<off_t>(at + offsetof(wire::Grant, gpu))) ==
        sizeof more)
      return 3;
    return a.grant->gpu[0].memory_limit_bytes == 1000 ? 0 : 4;
  });
  EXPECT_EQ(child.wait(), 0);
}

TEST_P(Attach, APathTooLongForASocketAddressWorks) {
  const auto granted = lease("a", 1000);
  const std::string deep = state_ / std::string(120, 'd');
  std::filesystem::create_directory_symlink(granted.directory, deep);
  EXPECT_GE(attach_or_exit(deep).slot, 0);
}

}  // namespace
}  // namespace aliquot::broker
