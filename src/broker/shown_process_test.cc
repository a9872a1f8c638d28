// What the ledger says of who sits in a slot: numbers to be shown, in the namespaces of the reader.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "broker/broker_fixture.h"

namespace aliquot::broker {
namespace {

class ShownProcess : public BrokerFixture {
 protected:
  // The cell of the only process that holds something.
  const wire::Cell* holder_cell(const wire::LedgerView& ledger) {
    for (unsigned slot = 0; slot < ledger.slots(); ++slot)
      if (ledger.cell(slot, 0).broker_pid != 0) return &ledger.cell(slot, 0);
    return nullptr;
  }
};

std::uint64_t own_pid_namespace() {
  struct stat st{};
  return stat("/proc/self/ns/pid", &st) == 0 ? st.st_ino : 0;
}

TEST_F(ShownProcess, ASlotTellsThePidAndItsNamespace) {
  const LeaseGrant grant = lease("shown", 1 << 20);
  const Child child = holder(grant.directory, 4096);
  LeaseFiles opened = files("shown");

  const wire::Cell* cell = holder_cell(opened.ledger());
  ASSERT_NE(cell, nullptr);
  EXPECT_EQ(cell->broker_pid, static_cast<std::uint32_t>(child.pid()));
  EXPECT_EQ(cell->own_pid, static_cast<std::uint32_t>(child.pid()));
  EXPECT_EQ(cell->pid_namespace, own_pid_namespace());
}

TEST_F(ShownProcess, AFreedSlotTellsNothing) {
  const LeaseGrant grant = lease("freed", 1 << 20);
  Child child = holder(grant.directory, 4096);
  LeaseFiles opened = files("freed");
  ASSERT_NE(holder_cell(opened.ledger()), nullptr);

  child.kill_now();

  EXPECT_TRUE(eventually([&] { return holder_cell(opened.ledger()) == nullptr; }));
}

TEST_F(ShownProcess, InAPidNamespaceBothNumbersAreTold) {
  const LeaseGrant grant = lease("nested", 1 << 20);
  int told[2];
  ASSERT_EQ(pipe2(told, O_CLOEXEC), 0);
  Child outer([&] {
    if (unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0) return write(told[1], "x", 1) == 1 ? 0 : 1;
    const pid_t inner = fork();
    if (inner == 0) {
      const wire::Attachment attachment = attach_or_exit(grant.directory);
      const bool attached = attachment.slot >= 0 && getpid() == 1;
      if (write(told[1], attached ? "y" : "n", 1) == 1) pause();
      _exit(1);
    }
    waitpid(inner, nullptr, 0);
    return 0;
  });
  char answer = 0;
  ASSERT_EQ(read(told[0], &answer, 1), 1);
  close(told[0]);
  close(told[1]);
  if (answer == 'x') GTEST_SKIP() << "this machine makes no pid namespaces for us";
  ASSERT_EQ(answer, 'y');

  LeaseFiles opened = files("nested");
  const wire::Cell* cell = holder_cell(opened.ledger());
  ASSERT_NE(cell, nullptr);
  EXPECT_EQ(cell->own_pid, 1u);
  EXPECT_NE(cell->broker_pid, 1u);
  EXPECT_NE(cell->pid_namespace, own_pid_namespace());
  kill(static_cast<pid_t>(cell->broker_pid), SIGKILL);
}

}  // namespace
}  // namespace aliquot::broker
