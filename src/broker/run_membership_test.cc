#include "broker/run_membership.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "broker/broker_fixture.h"
#include "broker/identity.h"
#include "common/files.h"

namespace aliquot::broker {
namespace {

Belongs membership(std::int32_t pid, std::vector<std::int32_t> processes,
                   std::vector<std::uint64_t> namespaces = {}, const std::string& cgroup = {}) {
  return membership_of(pid, {processes, namespaces, cgroup});
}

std::string own_cgroup() {
  const auto text = read_file("/proc/self/cgroup");
  const std::size_t at = text ? text->find("0::") : std::string::npos;
  if (at == std::string::npos) return {};
  return text->substr(at + 3, text->find('\n', at) - at - 3);
}

TEST(RunMembership, AProcessAndItsDescendantsBelong) {
  const std::int32_t self = getpid();
  EXPECT_EQ(membership(self, {self}), Belongs::kByDescent);
  Child child([&] {
    Child grandchild([&] { return membership(getpid(), {self}) == Belongs::kByDescent ? 0 : 1; });
    return grandchild.wait();
  });
  EXPECT_EQ(child.wait(), 0);
}

TEST(RunMembership, AParentOrAStrangerDoesNot) {
  const Child child([] {
    pause();
    return 0;
  });
  EXPECT_EQ(membership(getpid(), {child.pid()}), Belongs::kNo);
  EXPECT_EQ(membership(getppid(), {getpid()}), Belongs::kNo);
  EXPECT_EQ(membership(getpid(), {}), Belongs::kNo);
}

TEST(RunMembership, ANamespaceOfTheRunCovers) {
  const std::uint64_t own = namespace_of(getpid(), "mnt");
  EXPECT_EQ(membership(getpid(), {}, {0, own}), Belongs::kByNamespace);
  EXPECT_EQ(membership(getpid(), {}, {0, own + 1}), Belongs::kNo);
}

TEST(RunMembership, ACgroupAndWhatIsBelowItCover) {
  const std::string own = own_cgroup();
  if (own.empty()) GTEST_SKIP() << "no unified cgroup hierarchy here";
  EXPECT_EQ(membership(getpid(), {}, {}, own), Belongs::kByCgroup);
  EXPECT_EQ(membership(getpid(), {}, {}, own + "x"), Belongs::kNo);
  if (own.size() > 1) {
    EXPECT_EQ(membership(getpid(), {}, {}, own.substr(0, own.size() - 1)), Belongs::kNo);
  }
}

}  // namespace
}  // namespace aliquot::broker
