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

TEST(RunMembership, APodIsFoundUnderBothCgroupDriversAndBothVersions) {
  const std::string pod = "pod:0f2c9a4e-1b2c-4d3e-8f90-a1b2c3d4e5f6";
  EXPECT_TRUE(
      is_in_cgroup("0::/kubepods/burstable/pod0f2c9a4e-1b2c-4d3e-8f90-a1b2c3d4e5f6/4fd0a1\n", pod));
  EXPECT_TRUE(
      is_in_cgroup("0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-"
                   "pod0f2c9a4e_1b2c_4d3e_8f90_a1b2c3d4e5f6.slice/cri-containerd-4f.scope\n",
                   pod));
  EXPECT_TRUE(
      is_in_cgroup("12:pids:/x/kubepods/pod0f2c9a4e-1b2c-4d3e-8f90-a1b2c3d4e5f6/a\n0::/\n", pod));
}

TEST(RunMembership, AnotherPodOrAPartOfItsNameIsNot) {
  EXPECT_FALSE(is_in_cgroup("0::/kubepods/pod1234/abc\n", "pod:123"));
  EXPECT_FALSE(is_in_cgroup("0::/kubepods/pod123/abc\n", "pod:1234"));
  EXPECT_FALSE(is_in_cgroup("0::/kubepods/xpod1234/abc\n", "pod:1234"));
  EXPECT_FALSE(is_in_cgroup("0::/kubepods/pod/abc\n", "pod:"));
  EXPECT_FALSE(is_in_cgroup("no colons at all\n", "pod:1234"));
}

}  // namespace
}  // namespace aliquot::broker
