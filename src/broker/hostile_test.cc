// Tenants that mean harm: the broker stands, its work stays bounded, other leases notice nothing.
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <random>

#include "broker/broker_fixture.h"
#include "broker/codec.h"
#include "broker/listener.h"
#include "broker/unaccounted.h"

namespace aliquot::broker {
namespace {

using testing::Test;

class Hostile : public BrokerFixture {
 protected:
  // The broker answers, and soon.
  void expect_alive() {
    MonotonicClock clock;
    const Nanoseconds start = clock.now();
    const auto rows = client().list();
    ASSERT_TRUE(rows) << rows.error().message;
    EXPECT_LT(clock.now() - start, kSecond);
    EXPECT_EQ(kill(broker_.pid(), 0), 0);
  }
};

TEST_F(Hostile, RandomBytesInTheLedgerNeitherHoldNorEndTheBroker) {
  const auto granted = lease("bad", 1000);
  const auto good = lease("good", 1000);
  const auto mine = attach_or_exit(good.directory);
  Child scribbler([&] {
    const auto a = attach_or_exit(granted.directory);
    auto* words = reinterpret_cast<std::uint64_t*>(&a.ledger.header());
    std::mt19937_64 random(1);
    for (;;) words[random() % (a.ledger_bytes / 8)] = random();
    return 0;
  });
  for (int i = 0; i < 30; ++i) {
    Child victim = Child([&] {
      const auto a = attach_or_exit(granted.directory);
      quota_of(a).reserve(static_cast<unsigned>(a.slot), 10);
      return 0;
    });
    victim.kill_now();
    static_cast<void>(
        client().set_memory("bad", "", {model::MemoryQuantity::Kind::kBytes, 500u + i}));
    expect_alive();
  }
  scribbler.kill_now();
  EXPECT_EQ(quota_of(mine).reserve(static_cast<unsigned>(mine.slot), 1000), wire::Outcome::kOk);
  EXPECT_TRUE(eventually([&] { return client().get_lease("bad")->gpus[0].used_bytes == 0; }, 4000));
}

TEST_F(Hostile, JunkInTheLedgerIsToldOfThoughItsWriterHasEnded) {
  const auto granted = lease("bad", 1000);
  const Child scribbler([&] {
    const auto a = attach_or_exit(granted.directory);
    auto* words = reinterpret_cast<std::uint64_t*>(&a.ledger.header());
    std::mt19937_64 random(1);
    for (int i = 0; i < 200'000; ++i) words[random() % (a.ledger_bytes / 8)] = random();
    return 0;
  });
  EXPECT_TRUE(eventually([&] { return client().get_lease("bad")->anomalies != 0; }, 4000));
}

TEST_F(Hostile, ATruncatedLedgerPoisonsItsLeaseOnly) {
  const auto granted = lease("bad", 1000);
  lease("good", 1000);
  Child child([&] {
    const auto a = attach_or_exit(granted.directory);
    char path[64];
    const auto at = reinterpret_cast<std::uintptr_t>(&a.ledger.header());
    const auto end = (at + a.ledger_bytes + 4095) & ~std::uintptr_t{4095};
    snprintf(path, sizeof path, "/proc/self/map_files/%lx-%lx", at, end);
    const int fd = open(path, O_RDWR);
    if (fd < 0 || ftruncate(fd, 0) != 0) return 50;
    pause();
    return 0;
  });
  ASSERT_TRUE(eventually(
      [&] { return client().get_lease("bad")->state == wire::LeaseState::kPoisoned; }, 4000));
  expect_alive();
  wire::Attachment a;
  char reason[256];
  EXPECT_EQ(wire::attach(granted.directory.c_str(), 1000, a, reason, sizeof reason),
            wire::AttachResult::kRefused);
  EXPECT_NE(std::string(reason).find("truncated"), std::string::npos);
  EXPECT_EQ(client().get_lease("good")->state, wire::LeaseState::kLive);
  EXPECT_EQ(client().get_lease("bad")->gpus[0].limit_bytes, 0u);
  EXPECT_FALSE(client().set_memory("bad", "", {model::MemoryQuantity::Kind::kBytes, 1000}));
}

// All zero adds up, so no audit finds it: what the driver measures does.
TEST_F(Hostile, ALedgerRewrittenToAConsistentLieGainsNothingBeyondTheSlack) {
  const auto granted = lease("bad", 4 * kTestGiB);
  const auto a = attach_or_exit(granted.directory);
  const auto slot = static_cast<unsigned>(a.slot);
  ASSERT_EQ(quota_of(a).reserve(slot, 3 * kTestGiB), wire::Outcome::kOk);
  machine_->gpu[0].pid = getpid();
  machine_->gpu[0].pid_bytes = 3 * kTestGiB;
  std::memset(&a.ledger.gpu(0).head, 0, sizeof(wire::Pair));
  std::memset(&a.ledger.cell(slot, 0).mirror, 0, sizeof(wire::Pair));
  const auto held_back = [&] { return client().get_lease("bad")->gpus[0].held_back_bytes; };
  ASSERT_TRUE(eventually([&] { return held_back() != 0; }, 5000));
  EXPECT_EQ(held_back(), excess(3 * kTestGiB, 0, 1));
  EXPECT_EQ(client().get_lease("bad")->gpus[0].limit_bytes, 4 * kTestGiB);  // what was promised
  EXPECT_EQ(client().get_lease("bad")->anomalies, 0u);
  EXPECT_EQ(quota_of(a).reserve(slot, kTestGiB + ordinary_excess(0, 1) + 1),
            wire::Outcome::kRefused);
  EXPECT_EQ(quota_of(a).reserve(slot, kTestGiB + ordinary_excess(0, 1)), wire::Outcome::kOk);
  quota_of(a).release(slot, kTestGiB + ordinary_excess(0, 1));
  // Kept by the next broker, and given back with the memory.
  kill_broker();
  start_broker();
  EXPECT_EQ(a.grant->gpu[0].memory_limit_bytes, kTestGiB + ordinary_excess(0, 1));
  machine_->gpu[0].pid_bytes = 0;
  EXPECT_TRUE(eventually([&] { return held_back() == 0; }, 5000));
  EXPECT_EQ(quota_of(a).reserve(slot, 4 * kTestGiB), wire::Outcome::kOk);
}

TEST_F(Hostile, WhatAnotherProcessOfTheRunHoldsUnattachedIsTakenFromTheLimit) {
  const auto granted = lease("bad", 4 * kTestGiB);
  const auto a = attach_or_exit(granted.directory);
  Child stranger([] { return pause(); });
  machine_->gpu[0].pid = stranger.pid();
  machine_->gpu[0].pid_bytes = 4 * kTestGiB;
  ASSERT_TRUE(eventually(
      [&] { return a.grant->gpu[0].memory_limit_bytes == ordinary_excess(0, 1); }, 5000));
}

TEST_F(Hostile, SilentConnectionsGoAndDoNotKeepOthersOut) {
  const auto granted = lease("a", 1000);
  std::vector<UniqueFd> silent;
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  const int flood = static_cast<int>(std::min<rlim_t>(limit.rlim_max - 64, 1500));
  for (int i = 0; i < flood; ++i) {
    auto fd = connect_to(std::filesystem::path(granted.directory) / "socket", 1000);
    if (fd) silent.push_back(std::move(*fd));
  }
  EXPECT_GT(silent.size(), 400u);
  Child honest([&] { return attach_or_exit(granted.directory).slot; });
  EXPECT_EQ(honest.wait(), 0);
  expect_alive();
  // The fixture gives them 0.3 s: all are at end of file soon after.
  EXPECT_TRUE(eventually(
      [&] {
        char byte;
        return std::ranges::all_of(silent, [&](const UniqueFd& fd) {
          return recv(fd.get(), &byte, 1, MSG_DONTWAIT) == 0;
        });
      },
      2000));
}

TEST_F(Hostile, WhoFloodsTheSocketOfOneLeaseKeepsOnlyHimselfWaiting) {
  const auto bad = lease("bad", 1000), good = lease("good", 1000);
  Child flooder([&] {
    const auto path = std::filesystem::path(bad.directory) / "socket";
    for (;;) static_cast<void>(connect_to(path, 1000));
    return 0;
  });
  ASSERT_TRUE(eventually([&] { return client().get_lease("bad")->held_off > 0; }, 10'000));
  MonotonicClock clock;
  for (int i = 0; i < 10; ++i) {
    const Nanoseconds began = clock.now();
    Child honest([&] { return attach_or_exit(good.directory).slot; });
    EXPECT_EQ(honest.wait(), 0);
    EXPECT_LT(clock.now() - began, kSecond);
  }
  expect_alive();
  EXPECT_EQ(client().get_lease("good")->held_off, 0u);
  flooder.kill_now();
  // Gone, it may attach again.
  Child late([&] { return attach_or_exit(bad.directory).slot; });
  EXPECT_EQ(late.wait(), 0);
}

TEST_F(Hostile, JunkIsAnsweredByTheEndOfTheConnection) {
  const auto granted = lease("a", 1000);
  std::mt19937_64 random(3);
  for (const std::filesystem::path& path :
       {std::filesystem::path(granted.directory) / "socket", state_ / "broker.sock"}) {
    for (int i = 0; i < 300; ++i) {
      auto fd = connect_to(path, 1000);
      ASSERT_TRUE(fd);
      std::string junk(random() % 400, '\0');
      for (char& c : junk) c = static_cast<char>(random());
      const std::uint32_t magic[2] = {i % 2 ? kAdminMagic : wire::kControlMagic, 1};
      if (junk.size() > 8 && i % 3 == 0) std::memcpy(junk.data(), magic, sizeof magic);
      static_cast<void>(send_message(fd->get(), junk));
    }
    expect_alive();
  }
}

TEST_F(Hostile, AnotherVersionIsToldSo) {
  const auto granted = lease("a", 1000);
  auto fd = connect_to(std::filesystem::path(granted.directory) / "socket", 1000);
  wire::TenantRequest request;
  request.version = 7;
  ASSERT_TRUE(send_message(fd->get(), {reinterpret_cast<const char*>(&request), sizeof request}));
  wire::BrokerReply reply;
  ASSERT_EQ(recv(fd->get(), &reply, sizeof reply, 0), static_cast<ssize_t>(sizeof reply));
  EXPECT_EQ(reply.answer, wire::Answer::kNoVersion);
  EXPECT_NE(std::string(reply.reason).find("version 7"), std::string::npos);
}

TEST_F(Hostile, TakingAllSlotsOfOneLeaseLeavesTheOthersAlone) {
  const auto granted = lease("bad", 1000, 16);
  const auto good = lease("good", 1000);
  std::vector<Child> greedy;
  for (int i = 0; i < 16; ++i) greedy.push_back(holder(granted.directory, 1));
  Child honest([&] { return attach_or_exit(good.directory).slot; });
  EXPECT_EQ(honest.wait(), 0);
  greedy.clear();
  Child next([&] { return attach_or_exit(granted.directory).slot < 16 ? 0 : 1; });
  EXPECT_EQ(next.wait(), 0);
}

// Without a file system of its own the test cannot fill one.
TEST_F(Hostile, AFullFileSystemIsAClearErrorAtCreation) {
  Child child([&] {
    const auto place = state_ / "small";
    std::filesystem::create_directory(place);
    if (unshare(CLONE_NEWNS) != 0 ||
        mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("small", place.c_str(), "tmpfs", 0, "size=256k") != 0)
      return 50;
    const auto made = LeaseFiles::create(place / "lease", 1, 1024, 1, [](LeaseFiles&) {});
    if (made || made.error().code != Errc::kExhausted) return 1;
    const std::string& text = made.error().message;
    return text.find("No space left") != std::string::npos &&
                   text.find("fewer process slots") != std::string::npos
               ? 0
               : 2;
  });
  const int rc = child.wait();
  if (rc == 50) GTEST_SKIP() << "no mount namespace here";
  EXPECT_EQ(rc, 0);
}

// A state directory of 4 MiB that somebody fills: what stands goes on, also with the next broker,
// and only new leases are refused, until there is room.
TEST_F(Hostile, ATenantThatFillsTheStateDirectoryKeepsOnlyNewLeasesOut) {
  kill_broker();
  Child child([&] {
    if (unshare(CLONE_NEWNS) != 0 ||
        mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("small", state_.c_str(), "tmpfs", 0, "size=4m") != 0)
      return 50;
    start_broker();
    const auto granted = lease("a", 1000);
    Child first = holder(granted.directory, 600);
    const auto filler = state_ / "filler";
    UniqueFd fd(open(filler.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    for (std::string block(4096, 'x'); write(fd.get(), block.data(), block.size()) > 0;) continue;
    if (errno != ENOSPC) return 1;
    fd.reset();
    LeaseRequest more;
    more.driver = "fake";
    more.name = "b";
    more.shares.push_back({"0", {model::MemoryQuantity::Kind::kBytes, 1000}, 0});
    const auto refused = client().create_lease(more);
    if (refused || refused.error().message.find("make room in") == std::string::npos) return 2;
    kill_broker();
    start_broker();
    Child second = holder(granted.directory, 400);  // attaches, up to the limit
    first.kill_now();
    if (!eventually([&] { return client().get_lease("a")->gpus[0].used_bytes == 400; })) return 3;
    std::filesystem::remove(filler);
    return client().create_lease(more) ? 0 : 4;
  });
  const int rc = child.wait();
  if (rc == 50) GTEST_SKIP() << "no mount namespace here";
  EXPECT_EQ(rc, 0);
}

TEST_F(Hostile, AnAnswerToAChallengeThatWasNotSentIsRefused) {
  const auto granted = lease("a", 1000);
  auto fd = connect_to(std::filesystem::path(granted.directory) / "socket", 1000);
  wire::TenantRequest request;
  request.ask = wire::Ask::kAnswer;
  ASSERT_TRUE(send_message(fd->get(), {reinterpret_cast<const char*>(&request), sizeof request}));
  wire::BrokerReply reply;
  EXPECT_EQ(recv(fd->get(), &reply, sizeof reply, 0), 0);
  EXPECT_EQ(client().get_lease("a")->processes, 0u);
}

}  // namespace
}  // namespace aliquot::broker
