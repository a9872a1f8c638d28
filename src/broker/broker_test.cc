// Leases as administrators see them: created, refused, joined, listed, changed, ended.
#include "broker/broker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "broker/broker_fixture.h"

namespace aliquot::broker {
namespace {

using model::MemoryQuantity;
using testing::HasSubstr;

MemoryQuantity bytes(std::uint64_t n) { return {MemoryQuantity::Kind::kBytes, n}; }

class BrokerTest : public BrokerFixture {};

TEST_F(BrokerTest, ALeaseHasItsOwnDirectoryThatHoldsNothingButTheSocket) {
  const LeaseGrant granted = lease("a", 4 * kTestGiB);
  EXPECT_EQ(granted.name, "a");
  EXPECT_EQ(granted.gpus.at(0).limit_bytes, 4 * kTestGiB);
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(granted.directory))
    names.push_back(entry.path().filename());
  EXPECT_THAT(names, testing::ElementsAre("socket"));
  const LeaseFiles made = files("a");
  EXPECT_TRUE(wire::is_valid(made.grant()));
}

TEST_F(BrokerTest, WhatDoesNotFitIsRefusedWithWhatIsFree) {
  lease("a", 38 * kTestGiB);
  LeaseRequest request;
  request.driver = "fake";
  request.shares = {{"0", bytes(4 * kTestGiB), 0}};
  const auto refused = client().create_lease(request);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::kExhausted);
  EXPECT_THAT(refused.error().message, HasSubstr("gpu 0 2GiB"));
  EXPECT_THAT(refused.error().message, HasSubstr("gpu 1 40GiB"));
}

TEST_F(BrokerTest, OthersUseOfAGpuCounts) {
  machine_->gpu[0].free = 3 * kTestGiB;
  LeaseRequest request;
  request.driver = "fake";
  request.shares = {{"0", bytes(4 * kTestGiB), 0}};
  EXPECT_FALSE(client().create_lease(request));
  request.shares[0].memory = bytes(3 * kTestGiB);
  EXPECT_TRUE(client().create_lease(request));
}

TEST_F(BrokerTest, NamesAreUniqueAndChecked) {
  lease("a", kTestGiB);
  LeaseRequest request;
  request.driver = "fake";
  request.name = "../a";
  request.shares = {{"", bytes(kTestGiB), 0}};
  EXPECT_THAT(client().create_lease(request).error().message, HasSubstr("letters, digits"));
  request.name = "a";
  Child other([&] {  // another process than the lease's runner
    const auto again = client().create_lease(request);
    return again.has_value() || again.error().code != Errc::kInvalid;
  });
  EXPECT_EQ(other.wait(), 0);
}

TEST_F(BrokerTest, AnUnknownDriverIsAnErrorOfItsOwn) {
  LeaseRequest request;
  request.driver = "none";
  request.shares = {{"", bytes(kTestGiB), 0}};
  EXPECT_EQ(client().create_lease(request).error().code, Errc::kNotFound);
  machine_->broken = true;
  request.driver = "fake";
  EXPECT_THAT(client().create_lease(request).error().message, HasSubstr("it is broken"));
  machine_->broken = false;
  EXPECT_TRUE(client().create_lease(request));
}

TEST_F(BrokerTest, ALeaseEndsWithItsCommandAndLeavesNothing) {
  Child runner([&] {
    lease("short", kTestGiB);
    return 0;
  });
  EXPECT_EQ(runner.wait(), 0);
  EXPECT_TRUE(eventually([&] { return client().list()->empty(); }, 2000));
  EXPECT_FALSE(std::filesystem::exists(state_ / "leases" / "short"));
}

TEST_F(BrokerTest, ALeaseLivesOnWhileAnAttachedProcessLives) {
  int done[2];
  ASSERT_EQ(pipe(done), 0);
  Child runner([&] {
    const LeaseGrant granted = lease("long", kTestGiB);
    if (const pid_t pid = fork(); pid == 0) {
      prctl(PR_SET_PDEATHSIG, 0);
      const wire::Attachment a = attach_or_exit(granted.directory);
      quota_of(a).reserve(static_cast<unsigned>(a.slot), 77);
      const pid_t self = getpid();
      if (write(done[1], &self, sizeof self) < 0) return 1;
      pause();
    }
    pause();
    return 0;
  });
  pid_t survivor = 0;
  ASSERT_EQ(read(done[0], &survivor, sizeof survivor), static_cast<ssize_t>(sizeof survivor));
  runner.kill_now();
  usleep(600'000);
  const auto row = client().get_lease("long");
  ASSERT_TRUE(row) << row.error().message;
  EXPECT_EQ(row->runners, 0u);
  EXPECT_EQ(row->processes, 1u);
  EXPECT_EQ(row->gpus.at(0).used_bytes, 77u);
  kill(survivor, SIGKILL);
  EXPECT_TRUE(eventually([&] { return client().list()->empty(); }, 2000));
}

TEST_F(BrokerTest, ALoweredLimitIsInForceWhenTheCallReturns) {
  const LeaseGrant granted = lease("a", 4 * kTestGiB);
  const wire::Attachment a = attach_or_exit(granted.directory);
  const auto slot = static_cast<unsigned>(a.slot);
  ASSERT_EQ(quota_of(a).reserve(slot, 2 * kTestGiB), wire::Outcome::kOk);
  ASSERT_TRUE(client().set_memory("a", "", bytes(kTestGiB)));
  EXPECT_EQ(quota_of(a).reserve(slot, 1), wire::Outcome::kRefused);
  EXPECT_EQ(a.grant->gpu[0].memory_limit_bytes, kTestGiB);
  EXPECT_EQ(a.grant->generation, 2u);
  ASSERT_TRUE(client().set_memory("a", "0", bytes(3 * kTestGiB)));
  EXPECT_EQ(quota_of(a).reserve(slot, kTestGiB), wire::Outcome::kOk);
  EXPECT_THAT(client().set_memory("a", "5", bytes(kTestGiB)).error().message,
              HasSubstr("no GPU 5"));
  EXPECT_FALSE(client().set_memory("a", "", bytes(50 * kTestGiB)));
}

TEST_F(BrokerTest, WaitingForRoomEndsWhenALeaseEnds) {
  Child first([&] {
    lease("first", 30 * kTestGiB);
    usleep(400'000);
    return 0;
  });
  ASSERT_TRUE(eventually([&] { return client().get_lease("first").has_value(); }));
  LeaseRequest request;
  request.driver = "fake";
  request.name = "second";
  request.wait = true;
  request.shares = {{"0", bytes(30 * kTestGiB), 0}};
  const auto granted = client().create_lease(request);
  ASSERT_TRUE(granted) << granted.error().message;
  EXPECT_FALSE(client().get_lease("first"));
}

TEST_F(BrokerTest, ListTellsUseByProcessAndKindAndWhatTheDriverMeasures) {
  const LeaseGrant granted = lease("a", 4 * kTestGiB);
  const wire::Attachment a = attach_or_exit(granted.directory);
  const auto slot = static_cast<unsigned>(a.slot);
  quota_of(a).reserve(slot, 1000);
  quota_of(a).count(slot, wire::Kind::kVmm, 1000);
  a.ledger.cell(slot, 0).refusals = 3;
  machine_->gpu[0].pid = getpid();
  machine_->gpu[0].pid_bytes = 1500;
  const auto rows = client().list();
  ASSERT_TRUE(rows);
  ASSERT_EQ(rows->size(), 1u);
  const UsageRow& usage = rows->front().gpus.at(0);
  EXPECT_EQ(usage.used_bytes, 1000u);
  EXPECT_EQ(usage.unaccounted_bytes, 500);
  EXPECT_EQ(usage.kind_bytes.at(static_cast<unsigned>(wire::Kind::kVmm)), 1000u);
  EXPECT_EQ(usage.refusals, 3u);
  EXPECT_EQ(rows->front().rows.at(0).pid, getpid());
  EXPECT_EQ(rows->front().rows.at(0).held_bytes.at(0), 1000u);
}

TEST_F(BrokerTest, ALongListComesInPages) {
  for (int i = 0; i < 300; ++i) {
    LeaseRequest request;
    request.driver = "fake";
    request.slots = 1;
    request.shares = {{"", bytes(kTestGiB / 4), 0}};
    ASSERT_TRUE(client().create_lease(request));
  }
  EXPECT_EQ(client().list()->size(), 300u);
}

TEST_F(BrokerTest, AGpuProcessOfTheRunThatNeverAttachedIsReported) {
  lease("a", kTestGiB);
  Child sneaky([] {
    pause();
    return 0;
  });
  machine_->gpu[2].pid = sneaky.pid();
  machine_->gpu[2].pid_bytes = 5;
  // Of the measurement of the last second.
  std::vector<BypassRow> found;
  ASSERT_TRUE(eventually([&] { return !(found = client().bypasses().value()).empty(); }));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found.front().pid, sneaky.pid());
  EXPECT_EQ(found.front().index, 2u);
  machine_->gpu[2].pid = getppid();  // somebody else's
  EXPECT_TRUE(eventually([&] { return client().bypasses()->empty(); }));
}

TEST_F(BrokerTest, ThereIsOneBrokerPerStateDirectory) {
  FakeProbes probes(*machine_);
  MonotonicClock clock;
  BrokerOptions options;
  options.state_directory = state_;
  const auto second = Broker::open(options, probes, clock);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Errc::kUnavailable);
}

TEST_F(BrokerTest, ARealGpuThatAnotherUsersBrokerSharesIsRefused) {
  machine_->machine_wide = true;
  lease("a", kTestGiB);
  const std::string uuid = client().get_lease("a")->gpus.at(0).uuid;
  GpuClaims other;
  EXPECT_FALSE(other.claim(uuid));
  kill_broker();
  EXPECT_TRUE(other.claim(uuid));
  start_broker();  // keeps what stands, and gives nothing more
  EXPECT_TRUE(client().get_lease("a"));
  LeaseRequest request;
  request.driver = "fake";
  request.shares = {{"0", bytes(kTestGiB), 0}};
  EXPECT_THAT(client().create_lease(request).error().message, HasSubstr("start aliquotd"));
  request.shares = {{"1", bytes(kTestGiB), 0}};
  EXPECT_TRUE(client().create_lease(request));
}

TEST_F(BrokerTest, RoomAndShutdown) {
  lease("a", 10 * kTestGiB);
  const auto room = client().room("fake");
  ASSERT_TRUE(room);
  EXPECT_EQ(room->at(0).room_bytes, 30 * kTestGiB);
  EXPECT_EQ(room->at(1).room_bytes, 40 * kTestGiB);
  EXPECT_TRUE(client().shutdown());
  EXPECT_EQ(broker_.wait(), 0);
  EXPECT_EQ(Client::connect(state_).error().code, Errc::kUnavailable);
  start_broker();
  EXPECT_TRUE(client().get_lease("a"));  // its runner, this test, lives
}

}  // namespace
}  // namespace aliquot::broker
