#include "wire/quota.h"

#include <gtest/gtest.h>

#include <random>
#include <thread>
#include <vector>

#include "wire/quota_fixture.h"

namespace aliquot::wire {
namespace {

constexpr std::uint64_t kLimit = 1000;

TEST(Quota, GrantsToTheLimitExactlyAndRefusesOneByteMore) {
  QuotaFixture f(kLimit);
  EXPECT_EQ(f.quota.reserve(3, kLimit), Outcome::kOk);
  EXPECT_EQ(f.quota.reserve(4, 1), Outcome::kRefused);
  EXPECT_EQ(f.quota.used(), kLimit);
  EXPECT_EQ(f.quota.held_bytes(3), kLimit);
}

TEST(Quota, ReleaseGivesBackAndNeverGoesBelowZero) {
  QuotaFixture f(kLimit);
  ASSERT_EQ(f.quota.reserve(1, 10), Outcome::kOk);
  ASSERT_EQ(f.quota.reserve(2, 5), Outcome::kOk);
  f.quota.release(1, 4);
  EXPECT_EQ(f.quota.held_bytes(1), 6u);
  f.quota.release(1, 600);
  EXPECT_EQ(f.quota.held_bytes(1), 0u);
  EXPECT_EQ(f.quota.reserve(1, kLimit), Outcome::kOk);
}

TEST(Quota, ReclaimSubtractsOnceHoweverOftenItIsCalled) {
  QuotaFixture f(kLimit);
  ASSERT_EQ(f.quota.reserve(1, 10), Outcome::kOk);
  ASSERT_EQ(f.quota.reserve(2, 5), Outcome::kOk);
  EXPECT_EQ(f.quota.reclaim(1), Outcome::kOk);
  EXPECT_EQ(f.quota.reclaim(1), Outcome::kOk);
  EXPECT_EQ(f.quota.used(), 5u);
}

TEST(Quota, ANewLimitHoldsFromTheReturnOfBump) {
  QuotaFixture f(kLimit);
  ASSERT_EQ(f.quota.reserve(1, 600), Outcome::kOk);
  f.grant.gpu[0].memory_limit_bytes = 300;
  ASSERT_EQ(f.quota.bump(), Outcome::kOk);
  EXPECT_EQ(f.quota.reserve(1, 1), Outcome::kRefused);
  f.quota.release(1, 400);
  EXPECT_EQ(f.quota.reserve(1, 100), Outcome::kOk);
  EXPECT_EQ(f.quota.reserve(1, 1), Outcome::kRefused);
}

TEST(Quota, AnUnlimitedShareStillCounts) {
  QuotaFixture f(kUnlimitedBytes);
  EXPECT_EQ(f.quota.reserve(0, 1ull << 40), Outcome::kOk);
  EXPECT_EQ(f.quota.used(), 1ull << 40);
}

TEST(Quota, HugeRequestsAreRefusedNotWrapped) {
  QuotaFixture f(kUnlimitedBytes);
  ASSERT_EQ(f.quota.reserve(0, 1), Outcome::kOk);
  EXPECT_EQ(f.quota.reserve(0, kByteMask), Outcome::kRefused);
  EXPECT_EQ(f.quota.reserve(0, ~0ull), Outcome::kRefused);
  EXPECT_EQ(f.quota.used(), 1u);
}

TEST(Quota, ASlotsMirrorIsWrittenByTheNextWriterOfAnotherSlotAndOnce) {
  QuotaFixture f(kLimit);
  Tally alone;
  ASSERT_EQ(f.quota.reserve(2, 50, &alone), Outcome::kOk);
  const Pair mirror = f.view.cell(2, 0).mirror;
  ASSERT_EQ(f.quota.reserve(2, 30, &alone), Outcome::kOk);
  ASSERT_EQ(f.quota.release(2, 20, &alone), Outcome::kOk);
  EXPECT_EQ(alone.helped, 0u);
  EXPECT_EQ(f.view.cell(2, 0).mirror, mirror);
  EXPECT_EQ(f.quota.held_bytes(2), 60u);

  Tally other;
  ASSERT_EQ(f.quota.reserve(1, 1, &other), Outcome::kOk);
  ASSERT_EQ(f.quota.reserve(1, 1, &other), Outcome::kOk);
  EXPECT_EQ(other.helped, 1u);
  EXPECT_EQ(f.view.cell(2, 0).mirror.lo, 60u);
  EXPECT_EQ(f.quota.held_bytes(2), 60u);
  EXPECT_EQ(f.quota.reclaim(2), Outcome::kOk);
  EXPECT_EQ(f.quota.used(), 2u);
}

// 2^34 heads in a row of one slot: the mirror's old sequence is the head's again.
TEST(Quota, AMirrorThatIsOldByAWholeRoundOfSequencesIsSettledAllTheSame) {
  QuotaFixture f(kLimit);
  ASSERT_EQ(f.quota.reserve(2, 50), Outcome::kOk);
  ASSERT_EQ(f.quota.audit(), Outcome::kOk);  // settles
  const Head last = Head::unpack(f.view.gpu(0).head);
  f.view.gpu(0).head = Head{70, 70, 2, last.sequence}.pack();
  ASSERT_EQ(f.quota.reserve(1, 1), Outcome::kOk);
  EXPECT_EQ(f.quota.held_bytes(2), 70u);
  EXPECT_EQ(f.quota.audit(), Outcome::kOk);
}

// A broker that bumps between two operations of a process must not make its bytes those of before.
TEST(Quota, BumpAndAuditChangeNoNumberOfAHeadThatIsNotSettled) {
  QuotaFixture f(kLimit);
  ASSERT_EQ(f.quota.reserve(2, 50), Outcome::kOk);
  ASSERT_EQ(f.quota.bump(), Outcome::kOk);
  EXPECT_EQ(f.quota.audit(), Outcome::kOk);
  EXPECT_EQ(f.quota.held_bytes(2), 50u);
  EXPECT_EQ(f.quota.used(), 50u);
  f.quota.release(2, 50);
  EXPECT_EQ(f.quota.used(), 0u);
}

TEST(Quota, AuditIsSilentOnAnHonestLedgerAndRebuildsAScribbledOne) {
  QuotaFixture f(kLimit);
  ASSERT_EQ(f.quota.reserve(1, 100), Outcome::kOk);
  EXPECT_EQ(f.quota.audit(), Outcome::kOk);
  f.view.gpu(0).head = Head{77, 3, 2, 99}.pack();
  EXPECT_EQ(f.quota.audit(), Outcome::kRefused);
  EXPECT_EQ(f.quota.audit(), Outcome::kOk);
  EXPECT_EQ(f.quota.used(), 103u);
}

// The fullest head there is names a slot that this ledger does not have.
TEST(Quota, AFullScribbleFailsClosedUntilTheSlotIsReclaimed) {
  QuotaFixture f(kLimit);
  ASSERT_EQ(f.quota.reserve(1, 100), Outcome::kOk);
  ASSERT_EQ(f.quota.audit(), Outcome::kOk);  // since the last one nobody took anything
  f.view.gpu(0).head = Pair{~0ull, ~0ull};
  EXPECT_EQ(f.quota.reserve(1, 1), Outcome::kRefused);
  EXPECT_EQ(f.quota.audit(), Outcome::kRefused);
  EXPECT_EQ(f.quota.reclaim((kMaxSlots - 1) % f.view.slots()), Outcome::kOk);
  f.quota.audit();
  EXPECT_EQ(f.quota.audit(), Outcome::kOk);
  EXPECT_EQ(f.quota.used(), 100u);
}

TEST(Quota, SequencesWrapWithoutLosingABlow) {
  QuotaFixture f(kLimit);
  f.view.gpu(0).head = Head{0, 0, 0, kSequenceMask - 2}.pack();
  f.view.cell(0, 0).mirror = Pair{0, kSequenceMask - 2};
  for (unsigned i = 1; i <= 8; ++i) {
    ASSERT_EQ(f.quota.reserve(i, i), Outcome::kOk);
    ASSERT_EQ(f.quota.audit(), Outcome::kOk);
  }
  EXPECT_EQ(f.quota.used(), 36u);
  EXPECT_EQ(Head::unpack(f.view.gpu(0).head).sequence, 5u);
}

TEST(Quota, HeadSurvivesPacking) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 1000; ++i) {
    const Head head{random() & kByteMask, random() & kByteMask, random() % kMaxSlots,
                    random() & kSequenceMask};
    const Head again = Head::unpack(head.pack());
    EXPECT_EQ(again.used, head.used);
    EXPECT_EQ(again.after, head.after);
    EXPECT_EQ(again.slot, head.slot);
    EXPECT_EQ(again.sequence, head.sequence);
  }
}

TEST(Quota, GpusOfALeaseAreIndependent) {
  QuotaFixture f(kLimit, 2);
  f.grant.gpu[1].memory_limit_bytes = 10;
  const Quota second(f.view, f.grant, 1);
  EXPECT_EQ(second.reserve(1, 11), Outcome::kRefused);
  EXPECT_EQ(second.reserve(1, 10), Outcome::kOk);
  EXPECT_EQ(f.quota.used(), 0u);
  EXPECT_EQ(f.quota.reserve(1, kLimit), Outcome::kOk);
}

TEST(Quota, LinearMemoryIsWhatTheOtherKindsLeave) {
  QuotaFixture f(kLimit);
  ASSERT_EQ(f.quota.reserve(1, 100), Outcome::kOk);
  f.quota.count(1, Kind::kLinear, 30);
  f.quota.count(1, Kind::kVmm, 60);
  f.quota.count(1, Kind::kContext, 10);
  EXPECT_EQ(f.quota.bytes_of_kind(1, Kind::kLinear), 30u);
  EXPECT_EQ(f.quota.bytes_of_kind(1, Kind::kVmm), 60u);
  f.quota.count(1, Kind::kVmm, -60);
  f.quota.release(1, 90);
  EXPECT_EQ(f.quota.bytes_of_kind(1, Kind::kLinear), 0u);
  f.quota.count(1, Kind::kVmm, 60);  // counted, and its release not yet
  EXPECT_EQ(f.quota.bytes_of_kind(1, Kind::kLinear), 0u);
}

// Threads of several slots, random sizes, failing "driver calls", a limit that moves, an auditor.
TEST(Quota, ThreadsNeverPassTheLimitAndEndAtZero) {
  QuotaFixture f(kLimit);
  std::atomic<bool> stop{false};
  std::atomic<unsigned> over{0}, most_retries{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(t);
      const unsigned slot = t / 2;  // two threads share a slot
      for (int i = 0; i < 20000; ++i) {
        Tally tally;
        const std::uint64_t bytes = 1 + random() % 300;
        if (f.quota.reserve(slot, bytes, &tally) == Outcome::kOk) {
          if (f.quota.used() > kLimit) over++;
          f.quota.count(slot, Kind::kVmm, static_cast<std::int64_t>(bytes));
          f.quota.count(slot, Kind::kVmm, -static_cast<std::int64_t>(bytes));
          f.quota.release(slot, bytes, &tally);
        }
        unsigned seen = most_retries;
        while (seen < tally.retries && !most_retries.compare_exchange_weak(seen, tally.retries)) {
        }
      }
    });
  }
  std::thread broker([&] {
    for (unsigned i = 0; !stop; ++i) {
      f.grant.gpu[0].memory_limit_bytes.store(i % 2 ? kLimit : kLimit / 2,
                                              std::memory_order_release);
      if (f.quota.bump(~0u) != Outcome::kOk || f.quota.audit() == Outcome::kRefused) over++;
      std::this_thread::yield();
    }
  });
  for (auto& thread : threads) thread.join();
  stop = true;
  broker.join();
  EXPECT_EQ(over, 0u);
  EXPECT_LT(most_retries, 1000u);
  EXPECT_EQ(f.quota.used(), 0u);
  EXPECT_EQ(f.quota.audit(), Outcome::kOk);
}

}  // namespace
}  // namespace aliquot::wire
