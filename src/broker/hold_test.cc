// Leases that somebody holds, and a broker that serves every user of a machine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/syscall.h>

#include "broker/broker_fixture.h"

namespace aliquot::broker {
namespace {

struct HoldTest : testing::Test {
  HoldTest() {
    std::string name = testing::TempDir() + "/aliquot-hold-XXXXXX";
    directory = mkdtemp(name.data());
    std::filesystem::permissions(directory, std::filesystem::perms(0755));
  }
  ~HoldTest() override { std::filesystem::remove_all(directory); }

  std::unique_ptr<Broker> open(BrokerOptions options = {}) {
    options.state_directory = directory;
    options.audience = Audience::kEveryone;
    auto broker = Broker::open(options, probes, clock);
    EXPECT_TRUE(broker) << broker.error().message;
    return broker ? std::move(*broker) : nullptr;
  }

  static LeaseRequest request(const std::string& name) {
    LeaseRequest request;
    request.driver = "fake";
    request.name = name;
    request.slots = 16;
    request.shares = {{"1", {model::MemoryQuantity::Kind::kBytes, 4 * kTestGiB}, 3000}};
    return request;
  }

  // Runs `body` as nobody while the broker turns; its exit status.
  static int as_nobody(Broker& broker, const std::function<int()>& body) {
    const Child child([&] { return setgid(65534) == 0 && setuid(65534) == 0 ? body() : 99; });
    int status = 0;
    while (waitpid(child.pid(), &status, WNOHANG) == 0) broker.turn(5);
    return WEXITSTATUS(status);
  }

  std::filesystem::path directory;
  Shared<FakeMachine> machine;
  FakeProbes probes{*machine};
  MonotonicClock clock;
};

TEST_F(HoldTest, AHeldLeaseLivesWithoutProcessesAndIsTakenOver) {
  auto broker = open();
  const auto held = broker->book().hold(request("pod"));
  ASSERT_TRUE(held) << held.error().message;
  EXPECT_EQ(held->gpus.at(0).index, 1u);
  for (int i = 0; i < 3; ++i) broker->book().often();
  EXPECT_EQ(broker->book().size(), 1u);
  broker.reset();
  broker = open();
  ASSERT_TRUE(broker->book().row("pod"));
  EXPECT_EQ(broker->book().row("pod")->gpus.at(0).limit_bytes, 4 * kTestGiB);
}

// This thread may make no mounts while it lives.
class WithoutMounts {
 public:
  WithoutMounts() {
    syscall(SYS_capget, &header_, before_);
    __user_cap_data_struct less[2] = {before_[0], before_[1]};
    less[0].effective &= ~(1u << CAP_SYS_ADMIN);
    syscall(SYS_capset, &header_, less);
  }
  ~WithoutMounts() { syscall(SYS_capset, &header_, before_); }
  WithoutMounts(const WithoutMounts&) = delete;
  WithoutMounts& operator=(const WithoutMounts&) = delete;

 private:
  __user_cap_header_struct header_{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct before_[2]{};
};

TEST_F(HoldTest, AGrantThatRootInAContainerCouldWriteIsNotHeldWhereThatMatters) {
  const WithoutMounts without;
  BrokerOptions strict;
  strict.hold_guarded_only = true;
  auto broker = open(strict);
  EXPECT_EQ(broker->book().hold(request("pod")).error().code, Errc::kDenied);
  EXPECT_EQ(broker->book().size(), 0u);
  EXPECT_TRUE(std::filesystem::is_empty(directory / "leases"));
  broker.reset();
  broker = open();
  EXPECT_FALSE(broker->book().hold(request("pod"))->guarded);
}

TEST_F(HoldTest, AReleasedLeaseThatNobodyUsesIsGoneAtOnceAndItsRoomWithIt) {
  auto broker = open();
  ASSERT_TRUE(broker->book().hold(request("pod")));
  EXPECT_FALSE(broker->book().hold(request("pod")));  // one of a name
  ASSERT_TRUE(broker->book().release("pod"));
  EXPECT_EQ(broker->book().size(), 0u);
  EXPECT_EQ(broker->book().room("fake")->at(1).promised_bytes, 0u);
  EXPECT_EQ(broker->book().release("pod").error().code, Errc::kNotFound);
}

TEST_F(HoldTest, ANamedCgroupOfAPodIsKeptAcrossATakeover) {
  auto broker = open();
  LeaseRequest asked = request("pod");
  asked.cgroup = "pod:1234";
  ASSERT_TRUE(broker->book().hold(asked));
  broker.reset();
  auto files = LeaseFiles::open(directory / "leases" / "pod");
  ASSERT_TRUE(files);
  EXPECT_STREQ(files->table().cgroup, "pod:1234");
  EXPECT_EQ(files->table().held, 1u);
}

TEST_F(HoldTest, AUserMakesAndChangesHisOwnLeasesOnly) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to become another user";
  auto broker = open();
  ASSERT_TRUE(broker->book().hold(request("roots")));
  const int status = as_nobody(*broker, [this] {
    auto client = Client::connect(directory);
    if (!client) return 1;
    if (!client->create_lease(request("mine"))) return 2;
    const model::MemoryQuantity two{model::MemoryQuantity::Kind::kBytes, 2 * kTestGiB};
    if (!client->set_memory("mine", "", two)) return 3;
    const Status others = client->set_memory("roots", "", two);
    if (others || others.error().code != Errc::kDenied) return 4;
    if (client->join_lease("roots")) return 5;
    if (client->shutdown()) return 6;
    return client->list()->size() == 2 ? 0 : 7;  // who uses what is for all to see
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(broker->book().row("roots")->gpus.at(0).limit_bytes, 4 * kTestGiB);
}

TEST_F(HoldTest, AnotherUsersProcessAttachesThroughTheDirectoryHeWasGiven) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to become another user";
  auto broker = open();
  const int status = as_nobody(*broker, [this] {
    auto client = Client::connect(directory);
    if (!client) return 1;
    const auto granted = client->create_lease(request("mine"));
    if (!granted) return 2;
    const wire::Attachment attached = attach_or_exit(granted->directory);
    const auto slot = static_cast<unsigned>(attached.slot);
    if (quota_of(attached).reserve(slot, 4 * kTestGiB) != wire::Outcome::kOk) return 3;
    return quota_of(attached).reserve(slot, 1) == wire::Outcome::kRefused ? 0 : 4;
  });
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace aliquot::broker
