// A broker is killed, the next one takes over. Every test runs on both ways to know a process.
#include <poll.h>

#include "broker/broker_fixture.h"

namespace aliquot::broker {
namespace {

using wire::Outcome;

class Takeover : public BrokerFixture, public testing::WithParamInterface<IdentityPath> {
 protected:
  Takeover() : BrokerFixture(GetParam()) {}
  std::uint64_t used(const std::string& name) {
    return client().get_lease(name)->gpus[0].used_bytes;
  }
};

INSTANTIATE_TEST_SUITE_P(, Takeover,
                         testing::Values(IdentityPath::kPidfs, IdentityPath::kCredentials),
                         identity_name);

TEST_P(Takeover, AttachedProcessesRunOnAndKeepTheirSlots) {
  const auto granted = lease("a", 1000);
  const auto me = attach_or_exit(granted.directory);
  const auto slot = static_cast<unsigned>(me.slot);
  ASSERT_EQ(quota_of(me).reserve(slot, 400), Outcome::kOk);
  kill_broker();
  EXPECT_EQ(quota_of(me).reserve(slot, 100), Outcome::kOk);
  EXPECT_EQ(quota_of(me).reserve(slot, 501), Outcome::kRefused);
  start_broker();
  EXPECT_EQ(used("a"), 500u);
  EXPECT_EQ(attach_or_exit(granted.directory).slot, me.slot);
}

TEST_P(Takeover, WhoDiedMeanwhileIsSubtracted) {
  const auto granted = lease("a", 1000);
  Child living = holder(granted.directory, 300), dying = holder(granted.directory, 600);
  kill_broker();
  dying.kill_now();
  start_broker();
  EXPECT_EQ(used("a"), 300u);
  EXPECT_EQ(client().get_lease("a")->processes, 1u);
}

TEST_P(Takeover, AnotherProcessThatWearsTheNumberIsNotTheOldOne) {
  const auto granted = lease("a", 1000);
  Child other = holder(granted.directory, 600);
  kill_broker();
  {
    const LeaseFiles left = files("a");
    // As if the process had died and a later one had been given its pid.
    if (GetParam() == IdentityPath::kPidfs)
      left.table().slot[0].inode++;
    else
      left.table().slot[0].start_time++;
  }
  start_broker();
  EXPECT_EQ(used("a"), 0u);
}

TEST_P(Takeover, NewProcessesWaitForTheNextBroker) {
  const auto granted = lease("a", 1000);
  kill_broker();
  Child child([&] { return attach_or_exit(granted.directory, 5000).slot; });
  usleep(50'000);
  start_broker();
  EXPECT_EQ(child.wait(), 0);
}

TEST_P(Takeover, WithoutABrokerAttachGivesUpInTime) {
  const auto granted = lease("a", 1000);
  kill_broker();
  MonotonicClock clock;
  const Nanoseconds start = clock.now();
  wire::Attachment a;
  char reason[256];
  EXPECT_EQ(wire::attach(granted.directory.c_str(), 200, a, reason, sizeof reason),
            wire::AttachResult::kNoBroker);
  EXPECT_LT(clock.now() - start, 2 * kSecond);
}

TEST_P(Takeover, ALimitThatWasStoredIsInForceAfterwards) {
  const auto granted = lease("a", 1000);
  const auto me = attach_or_exit(granted.directory);
  kill_broker();
  files("a").table().granted_bytes[0] = 10;  // killed before the next store
  start_broker();
  EXPECT_EQ(quota_of(me).reserve(static_cast<unsigned>(me.slot), 11), Outcome::kRefused);
  EXPECT_EQ(client().get_lease("a")->gpus[0].limit_bytes, 10u);
}

TEST_P(Takeover, ALeaseWhoseCommandEndedMeanwhileIsRemoved) {
  Child runner([&] {
    lease("gone", 1000);
    pause();
    return 0;
  });
  ASSERT_TRUE(eventually([&] { return client().get_lease("gone").has_value(); }));
  kill_broker();
  runner.kill_now();
  start_broker();
  EXPECT_TRUE(eventually([&] { return client().list()->empty(); }, 2000));
}

TEST_P(Takeover, WhatIsDamagedIsRemovedAndGrantsNothingAnyMore) {
  const auto granted = lease("a", 1000);
  const auto me = attach_or_exit(granted.directory);
  lease("b", 1000);
  kill_broker();
  files("a").table().layout = 99;
  std::filesystem::create_directories(state_ / "leases" / ".c.new");
  start_broker();
  EXPECT_FALSE(client().get_lease("a"));
  EXPECT_TRUE(client().get_lease("b"));
  EXPECT_EQ(quota_of(me).reserve(static_cast<unsigned>(me.slot), 1), Outcome::kRefused);
  EXPECT_FALSE(std::filesystem::exists(state_ / "leases" / ".c.new"));
  EXPECT_FALSE(std::filesystem::exists(state_ / "leases" / "a"));
}

TEST_P(Takeover, LeasesOfAnEarlierBootAreRemoved) {
  lease("a", 1000);
  kill_broker();
  files("a").table().boot.words[0] ^= 1;
  start_broker();
  EXPECT_TRUE(client().list()->empty());
}

TEST_P(Takeover, ClientsSeeThatTheBrokerHasGone) {
  Client before = client();
  kill_broker();
  pollfd p{before.broker_pidfd(), POLLIN, 0};
  EXPECT_EQ(poll(&p, 1, 2000), 1);
  EXPECT_EQ(before.list().error().code, Errc::kUnavailable);
}

}  // namespace
}  // namespace aliquot::broker
