// Processes and threads whose demands add up to exactly the limit: nobody may ever be refused.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <random>
#include <thread>
#include <vector>

#include "wire/quota_fixture.h"

namespace aliquot::wire {
namespace {

constexpr unsigned kProcesses = 64, kThreads = 4, kRounds = 5000;
constexpr std::uint64_t kEach = 1000003, kLimit = kEach * kProcesses * kThreads;

struct Told {
  std::atomic<std::uint64_t> refused, over, most_retries, operations;
};

void take_and_give(const Quota& quota, unsigned slot, unsigned seed, Told& told) {
  std::mt19937_64 random(seed);
  for (unsigned i = 0; i < kRounds; ++i) {
    const std::uint64_t first = 1 + random() % (kEach - 1);
    Tally tally;
    for (const std::uint64_t bytes : {first, kEach - first})
      if (quota.reserve(slot, bytes, &tally) != Outcome::kOk) told.refused++;
    if (quota.used() > kLimit) told.over++;
    quota.release(slot, kEach - first, &tally);
    quota.release(slot, first, &tally);
    told.operations += 4;
    if (tally.retries > told.most_retries) told.most_retries = tally.retries;
    if (random() % 100 == 0) usleep(50);
  }
}

TEST(Fits, DemandsThatAddUpToTheLimitAreNeverRefused) {
  const QuotaFixture fixture(kLimit);
  auto& told = *static_cast<Told*>(
      mmap(nullptr, sizeof(Told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  std::vector<pid_t> children;
  for (unsigned p = 0; p < kProcesses; ++p) {
    const pid_t child = fork();
    if (child == 0) {
      std::vector<std::thread> threads;
      for (unsigned t = 0; t < kThreads; ++t)
        threads.emplace_back([&, t] { take_and_give(fixture.quota, p, p * kThreads + t, told); });
      for (std::thread& thread : threads) thread.join();
      _exit(0);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(told.operations, 4u * kRounds * kProcesses * kThreads);
  EXPECT_EQ(told.refused, 0u);
  EXPECT_EQ(told.over, 0u);
  EXPECT_LT(told.most_retries, 1000u);
  EXPECT_EQ(fixture.quota.used(), 0u);
  EXPECT_EQ(fixture.quota.audit(), Outcome::kOk);
  munmap(&told, sizeof told);
}

}  // namespace
}  // namespace aliquot::wire
